"""What is proved by trying or modelling all placements of a small layer."""
