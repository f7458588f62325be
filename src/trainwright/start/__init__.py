"""Turns the words of a command line into the program to check."""
