"""From a profile, a model and a tensor-parallel degree to the stages of every operator."""
