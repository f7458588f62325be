"""A dry run of a Keras learning-rate schedule: the optimizer's own, or a callback's for each epoch."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from trainwright.adapters.short_runs import WARMED_UP, rate_share, warmup_updates
from trainwright.core import Failure
from trainwright.probes.metrics import undone
from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import failure_of
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_POINTS = 200
# A callback's schedule is run over all epochs, since each rate may depend on the last, up to this many.
MOST_EPOCHS = 2_000
# A smaller relative difference does not count as a change of rate.
_MOVED = 0.01
# A schedule that does not move is queried up to this many doublings of the planned updates, to find where it does.
_DOUBLINGS = 20


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What a schedule does over the planned updates."""

    by_callback: bool = False
    """The callback sets the rate, whatever the optimizer was given."""
    kind: str = ""
    points: tuple[tuple[int, float], ...] = ()
    """(update, factor of the peak rate)."""
    now: float | None = None
    """The rate of the next update without callbacks."""
    peak: float = 0.0
    """The highest rate of these updates."""
    length: int | None = None
    """The number of updates after which it ends, if it says so."""
    steps: int | None = None
    """How many times it is queried."""
    moves_at: int | None = None
    """If it stays at its first rate over the planned updates: about where it starts to move."""
    failure: Failure | None = None


def setting_callback(callbacks: Sequence[Any]) -> Any:
    """The callback that sets the rate as a function of the epoch; None if there is none."""
    kind = keras.callbacks.LearningRateScheduler
    return next((c for c in callbacks if isinstance(c, kind) and type(c).on_epoch_begin is kind.on_epoch_begin), None)


def dry_run(optimizer: Any, callbacks: Sequence[Any], planned: int | None, epochs: range) -> DryRun:
    """Dry-run the optimizer's schedule over the planned updates, otherwise a callback's over the epochs.

    Args:
        epochs: the epoch numbers, as callbacks receive them.
    """
    if optimizer is None:
        return DryRun()
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    rate = version().rate(inner)
    try:
        now = tensors.rate_of(optimizer)
    except Exception as error:  # a schedule of the user's own raised, which is a finding
        return DryRun(kind=type(rate).__name__, length=_length(rate), steps=planned, failure=failure_of(error))
    if tensors.is_schedule(rate):
        return _of_schedule(rate, now, planned, version().asks_with(inner))
    setting = setting_callback(callbacks)
    if setting is None or not planned or not 0 < len(epochs) <= MOST_EPOCHS:
        return DryRun(now=now, peak=now)
    return _of_callback(setting, now, planned, epochs)


def _of_schedule(schedule: Any, now: float, planned: int | None, dtype: str) -> DryRun:
    """Query the schedule as fit does: with a variable of this type."""
    kind, length = type(schedule).__name__, _length(schedule)
    if not planned:
        return DryRun(kind=kind, now=now, peak=now, length=length)

    count, most = keras.Variable(0, dtype=dtype, trainable=False), np.iinfo(np.int32).max

    def at(update: int) -> float:
        count.assign(min(update, most))
        return tensors.number_of(schedule(count))

    updates = evenly(range(planned), _POINTS)
    try:
        rates = [at(u) for u in updates]
        moves_at = None if _moved(rates) else _first_move(at, rates[0], planned)
    except Exception as error:  # a schedule of the user's own raised, which is a finding
        return DryRun(kind=kind, now=now, peak=now, length=length, steps=planned, failure=failure_of(error))
    return DryRun(
        kind=kind,
        points=_factors(updates, rates),
        now=now,
        peak=max(rates),
        length=length,
        steps=planned,
        moves_at=moves_at,
    )


def _of_callback(callback: Any, rate: float, planned: int, epochs: range) -> DryRun:
    """Let a copy of the callback set the rate of a stand-in optimizer at the beginning of each epoch."""
    setting, variable = copy.copy(callback), keras.Variable(rate, trainable=False)
    stand_in = SimpleNamespace(learning_rate=variable, lr=variable)
    setting.set_model(SimpleNamespace(optimizer=stand_in))
    kind, rates = type(callback).__name__, []
    with undone(callback.schedule), _unrecorded():
        try:
            for epoch in epochs:
                setting.on_epoch_begin(epoch)
                rates.append(tensors.number_of(stand_in.learning_rate))
        except Exception as error:  # the user's function raised or returned no rate, which is a finding
            return DryRun(kind=kind, now=rate, peak=rate, steps=len(epochs), failure=failure_of(error))
    firsts = [round(i * planned / len(epochs)) for i in range(len(epochs) + 1)]
    spans = [(u, r) for i, r in enumerate(rates) for u in {firsts[i], max(firsts[i], firsts[i + 1] - 1)}]
    kept = sorted(spans)[:: math.ceil(len(spans) / _POINTS)]
    return DryRun(
        by_callback=True, now=rate, kind=kind, points=_factors(*zip(*kept)), peak=max(rates), steps=len(epochs)
    )


def rate_of_short_runs(schedule: DryRun) -> Any:
    """The rate for short runs: a rise to the peak if training warms up, the peak if a callback sets the rate; None: the
    optimizer's own.
    """
    rise = min(warmup_updates(schedule.points), WARMED_UP)
    if rise:
        return keras.optimizers.schedules.PolynomialDecay(
            schedule.peak * rate_share(0, rise), decay_steps=rise, end_learning_rate=schedule.peak
        )
    return schedule.peak if schedule.by_callback else None


def _unrecorded() -> contextlib.AbstractContextManager[Any]:
    """Keep summaries that a function writes from reaching a file."""
    tensorflow = sys.modules.get("tensorflow")
    return contextlib.nullcontext() if tensorflow is None else tensorflow.summary.record_if(False)


def _factors(updates: Sequence[int], rates: Sequence[float]) -> tuple[tuple[int, float], ...]:
    peak = max(rates) or 1e-12
    return tuple((u, r / peak) for u, r in zip(updates, rates))


def _moved(rates: Sequence[float]) -> bool:
    return any(abs(r - rates[0]) > _MOVED * abs(rates[0]) for r in rates)


def _first_move(at: Callable[[int], float], first: float, planned: int) -> int | None:
    later = (planned * 2**n for n in range(_DOUBLINGS))
    return next((u for u in later if _moved([first, at(u)])), None)


def _length(schedule: Any) -> int | None:
    """The number of updates after which a schedule is constant; None if there is none or it does not say."""
    if boundaries := getattr(schedule, "boundaries", None):
        return int(max(boundaries))
    steps = getattr(schedule, "decay_steps", None)
    if not isinstance(steps, (int, float)) or hasattr(schedule, "decay_rate") or getattr(schedule, "cycle", False):
        return None
    warmup = getattr(schedule, "warmup_steps", 0) if getattr(schedule, "warmup_target", None) is not None else 0
    return int(steps + warmup)
