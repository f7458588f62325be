"""Read in the user's source: places, statements, calls. Nothing is run."""
