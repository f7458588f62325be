"""Watchers of torch, and of what trains with it."""
