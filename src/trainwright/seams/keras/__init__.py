"""Observes one step of a Keras model."""
