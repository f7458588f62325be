"""Asks a record its questions; the verdict and the sheet that it gives."""
