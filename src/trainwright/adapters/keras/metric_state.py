"""State that a user's metric keeps when Keras resets it between two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trainwright.core.finding import Place
from trainwright.seams.source.places import is_users, show
from trainwright.stages.evaluation import Counter
from trainwright.tensors.keras import objects as tensors


def counters(model: Any, update: Callable[[], object]) -> Iterator[Counter]:
    """The variables of the user's metrics after one update, and after a reset and the same update again.

    Args:
        update: passes the same batch to the model's metrics.
    """
    model.reset_metrics()
    owners = [m for m in _metrics(model) if _own_place(m) is not None]
    start = _sums(owners)
    update()
    once = _sums(owners)
    model.reset_metrics()
    update()
    twice = _sums(owners)
    model.reset_metrics()
    for metric in owners:
        for variable in metric.variables:
            key = id(variable)
            yield Counter(
                name=f"{metric.name}.{variable.name}",
                start=start.get(key, 0.0),
                once=once.get(key, 0.0),
                twice=twice.get(key, 0.0),
                added_at=_own_place(metric),
                set_back_by="reset_state",
            )


def _metrics(model: Any) -> list[Any]:
    """The metrics given to compile; none if Keras stores them otherwise."""
    return list(getattr(getattr(model, "_compile_metrics", None), "metrics", ()))


def _own_place(metric: Any) -> Place | None:
    """Where the user's class defines its reset, otherwise its update; None for Keras's own."""
    for method in (type(metric).reset_state, type(metric).update_state):
        code = getattr(method, "__code__", None)
        if code is not None and is_users(code.co_filename):
            return Place(show(code.co_filename), code.co_firstlineno)
    return None


def _sums(metrics: list[Any]) -> dict[int, float]:
    return {id(v): float(np.sum(tensors.value_of(v))) for m in metrics for v in m.variables}
