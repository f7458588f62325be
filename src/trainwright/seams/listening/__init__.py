"""Records what a script builds and calls on its way to training."""
