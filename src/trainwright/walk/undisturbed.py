"""Keeps a walk's side effects away from the script and the report."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

from trainwright.frameworks.packages import LOGGING
from trainwright.seams.state.snapshot import RandomState


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Suppress framework warnings, and restore the random state in any case."""
    state = RandomState()
    levels = _quieted_loggers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in levels:
            logger.setLevel(level)
        state.put_back()


def _quieted_loggers() -> list[tuple[logging.Logger, int]]:
    loggers = [logging.getLogger(n) for n in LOGGING]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    return levels
