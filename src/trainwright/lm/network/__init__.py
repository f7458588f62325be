"""The network, its loss, and its fast forms."""
