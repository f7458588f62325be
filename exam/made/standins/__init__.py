"""Stand-ins: each part has `fill`, which gives a module that has just been imported its made data."""
