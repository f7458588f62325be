"""Judges a record: what the rules and questions find, what a repair is worth, what comes first, and the report of it."""
