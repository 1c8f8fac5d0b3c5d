"""What the reader of a plan should know before launching, by what it is about."""
