"""Watchers: what a framework does while a script runs, written into the record."""
