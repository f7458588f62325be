"""Each set on its own, and two sets compared."""
