"""What a script differentiates with JAX itself: the training of a loop that cannot be checked, in which no update is seen."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_told: list[Callable[[], object]] = []


@contextmanager
def watching_gradients(told: Callable[[], object]) -> Iterator[None]:
    """Call a function whenever a gradient is taken, or a step that takes one is compiled."""
    _told.append(told)
    try:
        yield
    finally:
        _told.remove(told)


def patch_gradients(module: Any) -> None:
    """Watch `jax.grad` and `jax.value_and_grad`."""
    for name in ("grad", "value_and_grad"):
        setattr(module, name, _watched(getattr(module, name)))


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def passed_on(*args: Any, **kwargs: Any) -> Any:
        taken = original(*args, **kwargs)
        if "keras" in sys.modules:  # whose own trainings are known
            return taken

        @functools.wraps(taken)
        def asked(*args: Any, **kwargs: Any) -> Any:
            for told in list(_told):
                told()
            return taken(*args, **kwargs)

        return asked

    return passed_on
