"""Our own exceptions.

TrainwrightError
├── UsageError          wrong usage of a command: exit status 2
├── UnsupportedVersion  the script uses a framework version too old to be checked: exit status 2
├── ReadError           a report or a settings file that cannot be read: exit status 2
└── WriteError          an output file cannot be written, for example because the disk is full: exit status 2

ScriptLeft (BaseException)   leaves the user's script where its training begins; not an error
"""

from __future__ import annotations


class TrainwrightError(Exception):
    """The base class of all our exceptions."""


class UsageError(TrainwrightError):
    """Wrong usage of a command or an API function."""


class UnsupportedVersion(TrainwrightError):
    """The script uses a framework version too old to be checked."""


class ReadError(TrainwrightError):
    """An input file of ours, such as a report or a run, cannot be read."""


class WriteError(TrainwrightError):
    """An output file cannot be written."""


class ScriptLeft(BaseException):
    """Leaves the user's script where its training begins; its `except Exception` does not catch it."""
