"""Data about each framework's names; imports no framework."""
