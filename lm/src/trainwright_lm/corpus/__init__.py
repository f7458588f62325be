"""Turns sources into documents for training."""
