"""The names of its worlds are registered by importing it; the programs are given worlds of gym instead."""
