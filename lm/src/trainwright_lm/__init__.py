"""Trains code-completion language models: prepare, train, eval, complete, export."""
