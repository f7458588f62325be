"""Exceptions: who is responsible, what they say, and how they are handled."""
