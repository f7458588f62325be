"""Watchers of JAX."""
