"""Tensor operations, one module per framework, with the same names in each (`core/tensors.py`)."""
