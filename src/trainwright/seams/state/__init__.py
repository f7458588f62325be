"""What a walk changes of the user's objects, and how it is restored."""
