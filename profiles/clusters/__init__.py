"""Clusters in tiers, from a dozen lines of YAML or by the name of a preset whose every number is cited."""
