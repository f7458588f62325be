"""Rules of the baseline stage."""
