"""Rules of the forward stage."""
