"""The loops of the user's code: found, chosen, and their bodies made callable."""
