"""What the check of the memory paper works out by itself."""
