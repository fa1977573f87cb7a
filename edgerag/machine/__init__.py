"""What this box is, and how to use it."""
