"""What measured runs of a training code say about prices and memory: a few constants, fitted, with their errors."""
