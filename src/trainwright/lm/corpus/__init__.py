"""From sources to documents worth learning from."""
