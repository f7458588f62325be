"""One call of a Keras model's `fit`, as its callbacks see it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.core import Place
from trainwright.rehearsal.record import Pass, Training
from trainwright.rehearsal.record_parts import Best, KeptWeights
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras.weights import FollowedWeights, fingerprint, weights_of
from trainwright.tensors.keras.objects import rate_of

if TYPE_CHECKING:
    from trainwright.look.repairs_of_keras import RepairedFit

# Packages whose callbacks are not the script's.
_OF_OTHERS = ("keras", "tf_keras", "trainwright")


@dataclass(kw_only=True)
class EpochEnd:
    """The end of an epoch."""

    epoch: int
    weights: float
    logs: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class RunningFit:
    """A training by `fit` that is under way."""

    recorder: Recorder
    model: Any
    backend: str
    given: Mapping[str, Any]
    data: FitData
    followed: FollowedWeights
    where: Place | None
    callbacks: list[Any]
    held: int
    """The number of the validation rows' set; 0: there are none."""
    training: Training
    repairing: RepairedFit | None = None
    """The repairs that are in force in its steps, if there are any."""
    epochs: list[EpochEnd] = field(default_factory=list)
    begins: int = 0
    saves: dict[str, int] = field(default_factory=dict)
    """The epoch in which each path was last written."""
    norm: float | None = None
    """Of the last gradient that was seen, where training runs eagerly."""
    passes: list[int] = field(default_factory=list)
    count: int = 0
    """Tensors of weights that are followed."""
    is_own_step: bool = False
    """Whether the losses of batches are the user's own numbers, not means since the epoch began."""
    _batches: int = 0
    _looked_at: int = 0
    _mean: float = 0.0
    _logs: list[Mapping[str, Any]] = field(default_factory=list)
    """What each epoch logged; the user's callbacks add to it."""

    def begin(self) -> None:
        """Called when everything is built and nothing is trained."""
        self.begins = self.recorder.record.updates
        step = type(self.model).train_step
        self.is_own_step = not str(step.__module__).startswith(("keras.", "tf_keras."))
        self.training.planned = self.data.planned_batches
        self.recorder.begin_training(self.training)
        self._follow()

    def _follow(self) -> None:
        """Follow the weights that there are: a model may be built by its first batch, as a whole or in part."""
        if (count := len(weights_of(self.model))) > self.count:
            self.count, self.training.weights_before = count, fingerprint(self.model)
            self.followed.begin(self.model, self.model.optimizer)

    def begin_epoch(self) -> None:
        self._batches, self._looked_at, self._mean = 0, 0, 0.0

    def begin_step(self, *, training: bool) -> None:
        """A batch begins, or with training=False an evaluation."""
        if self.repairing is not None:
            self.repairing.begin_step(training=training)

    def end_batch(self, batch: int, logs: Mapping[str, Any] | None) -> None:
        """Count the updates since the last call, and note losses and rates of some."""
        recorder = self.recorder
        if recorder.record.updates == self.begins:
            self._follow()
        done = max(1, batch + 1 - self._batches)
        self._batches += done
        if recorder.is_due(recorder.record.updates + done) and logs and "loss" in logs:
            mean = float(logs["loss"])
            value = mean
            if not self.is_own_step and math.isfinite(mean):  # of the batches since the last look
                span = self._batches - self._looked_at
                value = (mean * self._batches - self._mean * self._looked_at) / span
            self._mean, self._looked_at = mean, self._batches
            recorder.add_loss(value)
        for _ in range(done):
            recorder.end_update()
        if (
            recorder.is_due(recorder.record.updates) and self.backend != "jax"
        ):  # where variables wait for the epoch's end
            self._note_update()
        self.norm = None
        if recorder.is_over():
            self.training.is_cut = self.model.stop_training = recorder.is_emptied = True

    def _note_update(self) -> None:
        optimizer = self.model.optimizer
        self.recorder.add_update(optimizer, self.recorder.record.updates, rate_of(optimizer), self.norm)

    def end_epoch(self, epoch: int, logs: Mapping[str, Any] | None) -> None:
        """Before the user's callbacks: the weights of this epoch, and its evaluation pass."""
        updates, weights = self.recorder.record.updates, fingerprint(self.model)
        self._logs.append(logs or {})
        self.epochs.append(EpochEnd(epoch=epoch, weights=weights))
        if self.backend == "jax":
            self._note_update()
        if any(name.startswith("val_") for name in logs or ()):
            made = Pass(
                number=0,
                update=updates,
                model=self.recorder.number_of(self.model),
                is_trained=True,
                weights=weights,
                data=self.held,
                calls=1,
                where=self.where,
            )
            self.passes.append(self.recorder.begin_pass(made).number)

    def end_epoch_numbers(self, logs: Mapping[str, Any] | None) -> None:
        """After the user's callbacks, which may add numbers of their own."""
        for name, value in (logs or {}).items():
            try:
                number = float(value)
            except (TypeError, ValueError):
                continue
            self.epochs[-1].logs[name] = number
            self.recorder.add_number(name, number, "history")
        if self.recorder.is_over() and self._has_more():
            self.training.is_cut = self.model.stop_training = True

    @property
    def logged(self) -> tuple[str, ...]:
        """The names of the numbers that epochs ended with; none if more could have come: validation was due and none was made, or
        the training was cut and a callback of the script's may add some in a later epoch."""
        names = tuple(dict.fromkeys(name for logs in self._logs for name in logs))
        is_validated = self.data.validation is None or any(name.startswith("val_") for name in names)
        adds = any(type(one).__module__.partition(".")[0] not in _OF_OTHERS for one in self.callbacks)
        return names if is_validated and not (adds and self.training.is_cut) else ()

    def _has_more(self) -> bool:
        return bool(self.epochs) and self.epochs[-1].epoch + 1 < int(self.given.get("epochs") or 1)

    def end_test_batch(self) -> None:
        if self.recorder.is_over():
            self.model.stop_evaluating = True

    def end(self) -> float | None:
        """The training has ended, or an exception ended it. Returns the fingerprint of its weights."""
        if self.repairing is not None:
            self.repairing.end()
        weights = None
        if self.count:
            weights = fingerprint(self.model)
            self.followed.end(self.model, self.model.optimizer, self.recorder.record.updates - self.begins)
            for callback in self.callbacks:
                if (best := self._best(callback, weights)) is not None:
                    self.recorder.record.best.append(best)
        if self.recorder.training is self.training:
            self.recorder.end_training(weights)
        return weights

    def _best(self, callback: Any, weights: float) -> Best | None:
        """What a callback kept as best."""
        name = str(getattr(callback, "monitor", ""))
        first = int(getattr(callback, "start_from_epoch", 0) or 0)
        ends = [one for one in self.epochs if name in one.logs and one.epoch >= first]
        if not ends:
            return None
        kept: int | None
        if getattr(callback, "restore_best_weights", False):
            same = [i for i, one in enumerate(ends) if one.weights == weights]
            told = [i for i in same if ends[i].epoch == getattr(callback, "best_epoch", None)]
            kept = next(iter([*told, *reversed(same)]), None)
        elif getattr(callback, "save_best_only", False) and self.saves:
            written = max(self.saves.values())
            kept = next((i for i, one in enumerate(ends) if one.epoch == written), None)
        else:
            return None
        higher = {"min": False, "max": True}.get(str(getattr(callback, "mode", "")))
        return Best(name=name.lower(), higher_is_better=higher, values=tuple(k.logs[name] for k in ends), kept=kept)

    def note_saved(self, kept: KeptWeights) -> None:
        """A file of this model's weights was written."""
        self.saves[kept.path] = self.epochs[-1].epoch if self.epochs else 0


def callbacks_of(keras: Any, fit: RunningFit) -> tuple[Any, Any]:
    """Two callbacks for a training: one that goes before the user's, and one that goes behind them."""
    watching = fit.recorder.watching
    begin, begin_epoch, end_batch = (
        watching(RunningFit.begin),
        watching(RunningFit.begin_epoch),
        watching(RunningFit.end_batch),
    )
    end_epoch, end_numbers = watching(RunningFit.end_epoch), watching(RunningFit.end_epoch_numbers)
    begin_step = watching(RunningFit.begin_step)
    base: Any = keras.callbacks.Callback

    class Before(base):
        _supports_tf_logs = True

        def on_train_begin(self, logs: Any = None) -> None:
            begin(fit)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            begin_epoch(fit)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            begin_step(fit, training=True)

        def on_test_begin(self, logs: Any = None) -> None:
            begin_step(fit, training=False)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            end_batch(fit, batch, logs)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            end_epoch(fit, epoch, logs)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            fit.end_test_batch()

    class Behind(base):
        _supports_tf_logs = True

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            end_numbers(fit, logs)

    return Before(), Behind()


def with_callbacks(callbacks: Any, first: Any, last: Any) -> Any:
    """`fit`'s callbacks with ours; the user's own list stays as it is."""
    if hasattr(callbacks, "append") and not isinstance(callbacks, list):  # Keras's own list of callbacks
        callbacks.append(first)
        callbacks.append(last)
        return callbacks
    users = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    return [first, *users, last]


def is_internal(frame: Any) -> bool:
    """Whether Keras itself makes the call."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(("keras.", "tf_keras."))
