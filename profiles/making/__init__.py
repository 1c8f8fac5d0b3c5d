"""From rows as they were read to the tables of a profile: repeats, spikes, siblings, pace, thinning, errors."""
