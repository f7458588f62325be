"""Runs a script's file with edits applied, or as a notebook."""
