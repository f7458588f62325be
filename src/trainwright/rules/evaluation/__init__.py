"""Rules of the evaluation stage."""
