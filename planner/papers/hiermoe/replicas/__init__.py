"""Placement with redundant slots, and EPLB."""
