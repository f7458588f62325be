"""Lets the CPU stand in, in fp32, for a missing GPU that a script asks for, while the script is checked."""
