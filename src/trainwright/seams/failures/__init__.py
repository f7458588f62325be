"""Exceptions: whose they are, what they say, and what is done about them."""
