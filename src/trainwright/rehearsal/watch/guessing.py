"""What guessing would give: a metric function is kept with its last arguments, and asked after the run."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.probes.metrics import score_guesses
from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.listening.doors import watch_door

# Arguments are kept up to so many bytes, and functions that took longer (in seconds) are not asked again.
MOST_BYTES, MOST_SECONDS = 64_000_000, 1.0

Ask = Callable[[Any], Mapping[str, float]]


@dataclass(frozen=True)
class _Asked:
    predictions: Any
    labels: Any
    ask: Ask


class Guesses:
    """Keeps what was asked last under each name. Nothing is asked before the script has ended."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._asked: dict[str, _Asked] = {}
        recorder.on_finish.append(recorder.watching(self.finish))

    def keep(self, name: str, predictions: Any, labels: Any, ask: Ask, seconds: float) -> None:
        """A metric function was asked. `ask` gives its numbers for other predictions, under the names of the record."""
        parts = predictions if isinstance(predictions, tuple) else (predictions,)
        arrays = [a for a in (*parts, labels) if isinstance(a, np.ndarray)]
        self._asked.pop(name, None)
        if seconds <= MOST_SECONDS and sum(a.nbytes for a in arrays) <= MOST_BYTES:
            self._asked[name] = _Asked(predictions, labels, ask)

    def finish(self) -> None:
        """Ask what guessing gives."""
        for asked in self._asked.values():
            self._recorder.record.guesses.update(score_guesses(asked.predictions, asked.labels, asked.ask))
        self._asked.clear()


def watch_trainer_metrics(recorder: Recorder, kind: Any) -> None:
    """Keep what a Trainer's `compute_metrics` is given in its evaluations."""
    guesses = Guesses(recorder)
    note, copied = recorder.watching(functools.partial(_keep, guesses)), recorder.watching(_copied_labels)

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        own = self.compute_metrics
        if own is None or getattr(self.args, "batch_eval_metrics", False):
            return go_on(self, *args, **kwargs)
        prefix = kwargs.get("metric_key_prefix", args[4] if len(args) > 4 else "eval")

        @functools.wraps(own)
        def noting(given: Any, *more: Any, **named: Any) -> Any:
            labels, began = copied(given), time.perf_counter()  # many functions replace -100 in place
            answer = own(given, *more, **named)
            note(own, prefix, given, labels, time.perf_counter() - began)
            return answer

        self.compute_metrics = noting
        try:
            return go_on(self, *args, **kwargs)
        finally:
            if self.compute_metrics is noting:
                self.compute_metrics = own

    watch_door(kind, "evaluation_loop", passed_on)


def _copied_labels(given: Any) -> Any:
    labels = given.label_ids
    return labels.copy() if isinstance(labels, np.ndarray) and labels.nbytes <= MOST_BYTES else None


def _keep(guesses: Guesses, function: Any, prefix: str, given: Any, labels: Any, seconds: float) -> None:
    kind = type(given)

    def ask(predictions: Any) -> dict[str, float]:
        answer = function(kind(predictions=predictions, label_ids=np.array(labels)))
        named = {name if name.startswith(f"{prefix}_") else f"{prefix}_{name}": v for name, v in dict(answer).items()}
        return {name.lower(): float(v) for name, v in named.items() if isinstance(v, (int, float, np.number))}

    guesses.keep(prefix, given.predictions, labels, ask, seconds)
