"""torch's tensors, models and optimizers (`base.Tensors`)."""
