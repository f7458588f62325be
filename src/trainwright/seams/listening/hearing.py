"""Hears what libraries warn of while a script runs, and changes nothing about how the script itself sees it.

Two functions are watched. `warnings._showwarnmsg` is what Python calls with a warning that the filters let through, also
for warnings from C. `Logger.filter` has returned before a record reaches its handlers, so that a handler which looks at
its callers finds the same frames as without us. What a filter or a level suppresses is not heard: the author chose so,
and to hear it would mean to change `warnings.warn`, the filters or the levels. Nor is what `catch_warnings(record=True)`
took, because nobody was shown it.

What we call ourselves provokes is no fact about the script, and is not heard.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from trainwright.core import LibraryWarning
from trainwright.core.quotations import plain
from trainwright.frameworks.packages import LOGGING
from trainwright.seams.failures.blame import is_own_call
from trainwright.seams.listening.doors import calling_frame, standing, watch_door
from trainwright.seams.listening.seen import is_quiet
from trainwright.seams.source.places import is_ours, is_users, place_of

BEFORE, TRAINING = "before training", "training"
# A script that warns in ever new words is not heard forever, and no text is kept at any length.
MOST_WARNINGS = 500
MOST_CHARACTERS = 2000

# Packages that only pass other libraries' warnings on.
_CARRIERS = frozenset({*sys.stdlib_module_names, "absl", "lightning_utilities", "typing_extensions", "wrapt"})
# `captureWarnings` turns warnings, which were heard already, into records of this logger.
_CAPTURED = "py.warnings"
_NUMBER = re.compile(r"\d+")


class Hearing:
    """The warnings heard so far, each once.

    Args:
        has_begun: whether the script trains, or has trained.
    """

    def __init__(self, has_begun: Callable[[], bool] = lambda: False) -> None:
        self._kept: dict[tuple[str, str], LibraryWarning] = {}
        self.paused = False
        self._has_begun = has_begun
        self.prints: Callable[..., Any] = warnings._showwarnmsg_impl  # type: ignore[attr-defined]

    @property
    def kept(self) -> tuple[LibraryWarning, ...]:
        """The warnings in the order in which they were first heard."""
        return tuple(self._kept.values())

    def show(self, message: warnings.WarningMessage, original: Callable[[Any], None], frame: FrameType) -> None:
        """Hear a warning that Python is about to show, and show it, with the script's line where one of ours passes its call on."""
        if is_ours(message.filename) and (users := _origin(frame)[1]) is not None:
            message.filename, message.lineno, message.line = users.f_code.co_filename, users.f_lineno, None
        shown_by = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
        if not (self.paused or is_quiet()) and shown_by is self.prints:
            said = message.message.args[0] if isinstance(message.message, Warning) and message.message.args else ""
            if isinstance(said, str):
                self._keep(said, message.category.__name__, "warning", frame)
        original(message)

    def note(self, logger: logging.Logger, record: logging.LogRecord, frame: FrameType) -> None:
        """Hear a record that passed its logger's filters."""
        is_heard = not (self.paused or is_quiet()) and record.name != _CAPTURED
        if is_heard and _reaches_handler(logger, record) and _origin(frame)[0]:
            self._keep(_text_of(record), record.name, record.levelname.lower(), frame)

    def _keep(self, text: str, category: str, level: str, frame: FrameType) -> None:
        text = plain(text).strip()[:MOST_CHARACTERS]
        key = (category, _NUMBER.sub("0", text))
        if not text or key in self._kept or len(self._kept) >= MOST_WARNINGS or is_own_call(frame):
            return
        library, users = _origin(frame)
        self._kept[key] = LibraryWarning(
            text=text,
            library=library,
            category=category,
            level=level,
            where=None if users is None else place_of(users),
            phase=TRAINING if self._has_begun() else BEFORE,
        )


_now: Hearing | None = None


@contextlib.contextmanager
def heard_by(hearing: Hearing) -> Iterator[None]:
    """Hear warnings while the context lasts."""
    global _now

    def show_heard(go_on: Any, message: warnings.WarningMessage) -> None:
        hearing.show(message, go_on, calling_frame())

    def filter_heard(go_on: Any, self: logging.Logger, record: logging.LogRecord) -> Any:
        passed = go_on(self, record)
        if passed and record.levelno >= logging.WARNING:
            hearing.note(self, record, calling_frame())
        return passed

    before, _now = _now, hearing
    with contextlib.ExitStack() as heard:
        with standing(heard):
            watch_door(warnings, "_showwarnmsg", show_heard)
            watch_door(logging.Logger, "filter", filter_heard)
        try:
            yield
        finally:
            _now = before


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Suppress frameworks' warnings and records while the context lasts, and hear none."""
    hearing = _now or Hearing()
    was, hearing.paused = hearing.paused, True
    levels = tuple((logger, logger.level) for logger in map(logging.getLogger, LOGGING))
    _set_levels((logger, logging.CRITICAL) for logger, _ in levels)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hearing.paused = was
        _set_levels(levels)


def _set_levels(levels: Iterable[tuple[logging.Logger, int]]) -> None:
    for logger, level in levels:
        logger.setLevel(level)


def _reaches_handler(logger: logging.Logger, record: logging.LogRecord) -> bool:
    """Whether a handler would show a record, as in `Logger.callHandlers`."""
    found = False
    current: logging.Logger | None = logger
    while current is not None:
        for handler in current.handlers:
            found = True
            if record.levelno >= handler.level and not isinstance(handler, logging.NullHandler):
                return True
        current = current.parent if current.propagate else None
    return not found and logging.lastResort is not None


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # the library's: its arguments do not fit its format, as the handlers will see
        return ""


def _origin(frame: FrameType | None) -> tuple[str, FrameType | None]:
    """The library that issued a warning (empty if the user's own line did) and the innermost user frame."""
    library = ""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return library, frame
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not library and package not in _CARRIERS and not is_ours(frame.f_code.co_filename):
            library = package
        frame = frame.f_back
    return library, None
