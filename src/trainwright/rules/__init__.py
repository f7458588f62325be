"""The rules: `<stage>/<name>.py`, one a file. The folder is the registry."""
