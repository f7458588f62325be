"""Computations on plain arrays: NumPy only, no framework."""
