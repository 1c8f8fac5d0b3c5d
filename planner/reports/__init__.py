"""Renderings of plans for people."""
