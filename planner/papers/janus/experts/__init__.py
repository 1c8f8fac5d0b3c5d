"""What experts ask of their instances: copies, placement, and the balance of each batch."""
