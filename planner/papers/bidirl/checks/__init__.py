"""The parts of the check: what the problem says, computed a second time, and what a plan says beside it."""
