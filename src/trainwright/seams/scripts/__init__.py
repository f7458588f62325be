"""How a script's file is run: as it would be edited, or as a notebook."""
