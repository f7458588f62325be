"""Completing a prompt with a model."""
