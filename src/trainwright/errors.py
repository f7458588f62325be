"""Our own exceptions.

TrainwrightError
├── UsageError          wrong usage of a command: exit status 2
├── UnsupportedVersion  the script uses a framework version too old to be checked: exit status 2
├── ReadError           a report or a settings file that cannot be read: exit status 2
└── WriteError          an output file cannot be written, for example because the disk is full: exit status 2

WalkFinished (BaseException)   unwinds the user's script once its walk is done; not an error
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


class DeviceLost(TrainwrightError):
    """An assertion on the GPU ended the check and hides its cause, which a check on the CPU would show."""


class WalkFinished(BaseException):
    """Raised through the user's script once the check is done; its `except Exception` does not catch it."""
