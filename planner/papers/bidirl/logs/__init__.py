"""Step times as others wrote them down: rows of our own, and the published tables of verl and NeMo-RL."""
