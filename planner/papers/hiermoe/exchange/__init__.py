"""What an exchange moves and takes under a placement, and what placements are."""
