"""The rules, one per file: `<stage>/<name>.py`. The folder is the registry."""
