"""What new files are made of."""
