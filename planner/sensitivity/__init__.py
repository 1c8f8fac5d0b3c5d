"""What if a number of a plan's problem were another: solved again at other values, by the plan's own means."""
