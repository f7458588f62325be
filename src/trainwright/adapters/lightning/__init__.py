"""Lightning's Trainer: its training step as the body of a loop."""
