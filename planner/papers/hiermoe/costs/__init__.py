"""The coefficients of the derived form."""
