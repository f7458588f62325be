"""Rules of the optimizer stage."""
