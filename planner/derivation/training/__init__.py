"""Seconds of a layer's forward and backward in training on one rank, by component, over arrays of layouts."""
