"""What is computed of plain arrays: NumPy only, no framework."""
