"""Keeps user code that the check runs from writing, sending, starting processes and printing."""
