"""Measurements of any torch model, optimizer and loss, however it is trained."""
