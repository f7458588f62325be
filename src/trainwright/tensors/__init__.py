"""What a tensor is, one module a framework, the same names in each (`core/tensors.py`)."""
