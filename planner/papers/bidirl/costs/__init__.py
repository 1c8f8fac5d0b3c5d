"""From a model and measurements to the layouts and costs of the explicit form (page, section 6)."""
