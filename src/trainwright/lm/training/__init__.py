"""Training of a network."""
