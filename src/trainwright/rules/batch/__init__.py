"""Rules of the batch stage."""
