"""Watchers of Keras, on all its backends."""
