"""Evaluation of a model against baselines."""
