"""Keras's tensors, layers and optimizers (`base.Tensors`)."""
