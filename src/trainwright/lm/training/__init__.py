"""The training of a network, and the folder of a run."""
