"""Rules of the dataset stage."""
