"""Our own exceptions.

TrainwrightError
├── UsageError          a command that was called wrongly: exit status 2
├── UnsupportedVersion  a framework of the script's that is older than those a walk knows: exit status 2
├── ReadError           a report or a settings file that cannot be read: exit status 2
├── WriteError          a file of ours that cannot be written, on a full disk for one: exit status 2
└── ScriptFailed        the user's script raised while it was trained for real, or after: exit status 1

WalkFinished (BaseException)   leaves the user's script once its walk is done; never an error
"""

from __future__ import annotations


class TrainwrightError(Exception):
    """The root of what we raise on purpose."""


class UsageError(TrainwrightError):
    """A command or an API function that was called wrongly."""


class UnsupportedVersion(TrainwrightError):
    """A framework that the script uses is older than those a walk knows."""


class ReadError(TrainwrightError):
    """A file of ours that cannot be read."""


class WriteError(TrainwrightError):
    """A file of ours that cannot be written."""


class ScriptFailed(TrainwrightError):
    """The user's script raised while it was trained for real, or after; its exception is the cause."""


class WalkFinished(BaseException):
    """Raised through the user's script when the walk is done, past its `except Exception`."""
