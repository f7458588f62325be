"""The environments in which users train, and a script of each framework to check in them."""
