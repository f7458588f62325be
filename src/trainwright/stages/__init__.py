"""One module a stage: its facts, and how they are measured from what the seams saw. No framework."""
