"""A run's folder and its checkpoints."""
