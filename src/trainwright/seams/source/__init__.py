"""Reads the user's source: places, statements, calls. Runs nothing."""
