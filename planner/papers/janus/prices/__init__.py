"""The coefficients of the derived form, of one pair of devices."""
