"""Each set by itself, and two sets beside each other."""
