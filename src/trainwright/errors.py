"""Our own exceptions.

TrainwrightError
├── UsageError          a command that was called wrongly: exit status 2
└── ReadError           a report or a settings file that cannot be read: exit status 2

WalkFinished (BaseException)   leaves the user's script once its walk is done; never an error
"""

from __future__ import annotations


class TrainwrightError(Exception):
    """The root of what we raise on purpose."""


class UsageError(TrainwrightError):
    """A command or an API function that was called wrongly."""


class ReadError(TrainwrightError):
    """A file of ours that cannot be read."""


class WalkFinished(BaseException):
    """Raised through the user's script when the walk is done, past its `except Exception`."""
