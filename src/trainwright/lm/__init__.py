"""The maker of code-completion language models: prepare, train, eval, complete, export."""
