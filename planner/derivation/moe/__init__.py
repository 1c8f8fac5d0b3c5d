"""A model with experts whose parts are served apart: its layers, what they cost in one forward, what they fill."""
