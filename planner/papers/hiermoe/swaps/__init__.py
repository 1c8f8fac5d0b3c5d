"""Placement without replicas: local search by swaps of experts."""
