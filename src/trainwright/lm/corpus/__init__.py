"""Turns sources into documents that are worth learning from."""
