"""One step of a torch model, watched from outside."""
