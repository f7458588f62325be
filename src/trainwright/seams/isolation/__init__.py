"""What the user's code must not do while the walk runs it: write, send, start, print."""
