"""What a model writes after a prompt."""
