"""Lets the CPU stand in for a GPU that a script asks for and that is not here, in fp32, while the script is checked."""
