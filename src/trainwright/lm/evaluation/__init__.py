"""How good a model is, and compared with what."""
