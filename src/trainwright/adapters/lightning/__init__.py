"""Lightning's Trainer, with its training step as the body of a loop."""
