"""What there is to see in a plan of each task, section by section."""
