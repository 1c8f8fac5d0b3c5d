"""The parts of the check: what the page says of a layout, computed a second time, and what a plan says beside it."""
