"""The commands of `trainwright lm`, a module each, imported when one is called."""
