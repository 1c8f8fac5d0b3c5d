"""Lower bounds that hold for any placement."""
