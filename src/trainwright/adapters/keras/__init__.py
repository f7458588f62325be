"""Keras's `fit`, on TensorFlow, torch or JAX."""
