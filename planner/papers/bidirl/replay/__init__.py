"""The event replay of a training run over both pools (page, section 3.6)."""
