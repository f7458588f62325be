"""What a walk keeps away from the script and from the report while it looks."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

from trainwright.frameworks.packages import LOGGING
from trainwright.seams.state.snapshot import RandomState


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """No warnings of frameworks between the report's lines; random numbers put back whatever happens."""
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
