"""Hears what libraries warn of while a script runs, and changes nothing about how the script itself sees it.

Two functions are watched. `warnings._showwarnmsg` is what Python calls with a warning that the filters let through, also
for warnings from C. `Logger.filter` has returned before a record reaches its handlers, so that a handler which looks at
its callers finds the same frames as without us. What a filter or a level suppresses is not heard: the author chose so,
and to hear it would mean to change `warnings.warn`, the filters or the levels. Nor is what `catch_warnings(record=True)`
took, because nobody was shown it.

The check makes many calls that the training would not make, with other rows, weights and rates, and what those provoke is
no fact about the script. Heard is what comes before the check takes over and, during it, the first run of the training
step: with the script's own rows and weights, before any repair. Evaluations in the check are not heard, because they run
on few rows with an untrained model, where a metric is undefined for no fault of the script.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from trainwright.core import LibraryWarning, Stage
from trainwright.frameworks.packages import LOGGING
from trainwright.seams.failures.blame import is_own_call
from trainwright.seams.source.places import is_ours, is_users, place_of

BEFORE = "before training"
# A script that warns in ever new words is not heard forever, and no text is kept at any length.
MOST_WARNINGS = 500
MOST_CHARACTERS = 2000

# Packages that only pass other libraries' warnings on.
_CARRIERS = frozenset({*sys.stdlib_module_names, "absl", "lightning_utilities", "typing_extensions", "wrapt"})
# `captureWarnings` turns warnings, which were heard already, into records of this logger.
_CAPTURED = "py.warnings"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class _Silence:
    """What the script had set before the check suppressed all warnings."""

    filters: tuple[Any, ...]
    levels: tuple[tuple[logging.Logger, int], ...]


class Hearing:
    """The warnings heard so far, each once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], LibraryWarning] = {}
        self.paused = False
        self.silence: _Silence | None = None
        self.step_heard = False
        self.in_step: Callable[..., Any] | None = None
        """While the step is heard: what would print its warnings."""
        self.prints: Callable[..., Any] = warnings._showwarnmsg_impl  # type: ignore[attr-defined]

    @property
    def kept(self) -> tuple[LibraryWarning, ...]:
        """The warnings in the order in which they were first heard."""
        return tuple(self._kept.values())

    def show(self, message: warnings.WarningMessage, original: Callable[[Any], None], frame: FrameType) -> None:
        """Hear a warning that Python is about to show, and show it unless it is the check's step that is heard."""
        shown_by = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
        if not self.paused and shown_by is self.prints:
            said = message.message.args[0] if isinstance(message.message, Warning) and message.message.args else ""
            if isinstance(said, str):
                self._keep(said, message.category.__name__, "warning", frame)
        if self.in_step is None or shown_by is not self.in_step:
            original(message)

    def passes(self, logger: logging.Logger, record: logging.LogRecord, frame: FrameType) -> bool:
        """Hear a record that passed its logger's filters; returns whether it goes on to the handlers."""
        if self.paused or record.name == _CAPTURED:
            return True
        if _reaches_handler(logger, record) and _origin(frame)[0]:
            self._keep(_text_of(record), record.name, record.levelname.lower(), frame)
        return self.in_step is None or record.name.partition(".")[0] not in LOGGING

    def _keep(self, text: str, category: str, level: str, frame: FrameType) -> None:
        text = _COLOR.sub("", text).strip()[:MOST_CHARACTERS]
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
            phase=BEFORE if self.in_step is None else Stage.FORWARD.label,
        )


_now: Hearing | None = None


@contextlib.contextmanager
def heard_by(hearing: Hearing) -> Iterator[None]:
    """Hear warnings while the context lasts."""
    global _now
    show, filter_ = warnings._showwarnmsg, logging.Logger.filter  # type: ignore[attr-defined]

    def show_heard(message: warnings.WarningMessage) -> None:
        hearing.show(message, show, sys._getframe(1))

    def filter_heard(self: logging.Logger, record: logging.LogRecord) -> Any:
        passed = filter_(self, record)
        if passed and record.levelno >= logging.WARNING and not hearing.passes(self, record, sys._getframe(1)):
            return False
        return passed

    before, _now = _now, hearing
    inherited = "filter" not in vars(logging.Logger)
    warnings._showwarnmsg = show_heard  # type: ignore[attr-defined]
    logging.Logger.filter = filter_heard  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        _now = before
        warnings._showwarnmsg = show  # type: ignore[attr-defined]
        if inherited:
            del logging.Logger.filter
        else:
            logging.Logger.filter = filter_  # type: ignore[method-assign]


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Hear nothing while a training is checked, its first step aside."""
    if _now is None:
        yield
        return
    was, _now.paused = _now.paused, True
    if not was:
        _now.step_heard = False
    try:
        yield
    finally:
        _now.paused = was


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Suppress frameworks' warnings and records while the context lasts."""
    levels = tuple((logger, logger.level) for logger in map(logging.getLogger, LOGGING))
    now, silence = _now, _Silence(tuple(warnings.filters), levels)
    _set_levels((logger, logging.CRITICAL) for logger, _ in levels)
    before = now.silence if now else None
    if now is not None and before is None:
        now.silence = silence
    try:
        with paused(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _set_levels(levels)
        if now is not None:
            now.silence = before


@contextlib.contextmanager
def step_heard() -> Iterator[None]:
    """Hear what a check's first run of the training step warns of, as far as the script's own settings show it."""
    now = _now
    if now is None or now.silence is None or now.step_heard:
        yield
        return
    now.step_heard = True
    quiet = [(logger, logger.level) for logger, _ in now.silence.levels]
    with warnings.catch_warnings():
        warnings.resetwarnings()
        # "always" leaves no entry in a module's registry, and an exception would end the check's step.
        found: list[Any] = [(f[0] if f[0] == "ignore" else "always", *f[1:]) for f in now.silence.filters]
        warnings.filters.extend(found)  # type: ignore[attr-defined]
        warnings.simplefilter("always", append=True)
        _set_levels(now.silence.levels)
        now.paused, now.in_step = False, warnings._showwarnmsg_impl  # type: ignore[attr-defined]
        try:
            yield
        finally:
            now.paused, now.in_step = True, None
            _set_levels(quiet)


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
