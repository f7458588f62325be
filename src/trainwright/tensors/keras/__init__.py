"""Keras's tensors, layers and optimizers (`core/tensors.py`)."""
