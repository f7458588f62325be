"""The rules, in files of one family each: `<stage>/<family>.py`, with their pages beside them. The folders are the registry."""
