"""One module per stage: its facts, and how they are measured from what the seams observed. No framework."""
