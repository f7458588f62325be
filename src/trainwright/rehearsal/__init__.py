"""Runs a script to its end, isolated, and records what happens."""
