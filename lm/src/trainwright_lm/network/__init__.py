"""The network, its loss, and a fast decoder."""
