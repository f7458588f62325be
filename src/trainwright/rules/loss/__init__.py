"""Rules of the loss stage."""
