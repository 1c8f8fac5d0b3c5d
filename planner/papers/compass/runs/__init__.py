"""Measured runs of an operator: how files hold them, what is fitted to them, how they enter a problem."""
