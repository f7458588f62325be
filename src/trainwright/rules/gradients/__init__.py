"""Rules of the gradients stage."""
