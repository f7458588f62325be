"""Snapshots of the user's objects that a walk changes, and their restoration."""
