"""Conversion of runs to and from other formats, and the Hub."""
