"""What a plan warns of, by what it is of."""
