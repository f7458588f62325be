"""Snapshots of the user's objects that a check changes, and their restoration."""
