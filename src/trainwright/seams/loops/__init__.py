"""The loops of the user's code: finds them, selects one, and makes their bodies callable."""
