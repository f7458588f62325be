"""torch's tensors, models and optimizers (`core/tensors.py`)."""
