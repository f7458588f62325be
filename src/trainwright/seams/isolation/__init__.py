"""Keeps user code that the walk runs from writing, sending, starting processes and printing."""
