"""Evaluation of a model, compared with baselines."""
