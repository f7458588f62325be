"""Training loops of the user's own, and steps that are run like one."""
