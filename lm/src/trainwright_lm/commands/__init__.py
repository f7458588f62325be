"""The commands of `trainwright lm`, one module each; a module's dependencies are imported when it is called."""
