"""From the words of a command to the program that is to be walked."""
