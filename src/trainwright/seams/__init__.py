"""What stands between a script and its framework.

`listening/` stands there from the framework's import on, also before a check in a notebook, and notes which line built what.
The rest, and the watchers at doors of their own (`rehearsal/watch/`), stand only while a run lasts.
"""
