"""Rules of the overfit stage."""
