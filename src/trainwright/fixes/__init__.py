"""Changes to the user's source."""
