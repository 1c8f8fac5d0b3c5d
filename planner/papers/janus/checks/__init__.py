"""The parts of the independent check."""
