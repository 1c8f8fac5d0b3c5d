"""From a profile, a cluster and a model to the rows of a cost table."""
