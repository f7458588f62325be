"""Rules of the setup stage."""
