"""Observes one step of a torch model."""
