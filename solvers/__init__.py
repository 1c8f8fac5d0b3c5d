"""Optimisation engines. Knows nothing of papers, plans or hardware."""
