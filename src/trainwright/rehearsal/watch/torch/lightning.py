"""Lightning's Trainer: where its trainings begin and end, what modules log, and what its callbacks call best."""

from __future__ import annotations

import functools
import importlib
import math
import sys
from typing import Any

import torch

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.watch.torch.samples import is_plain, plain
from trainwright.rehearsal.watch.torch.watch import TorchWatch, TrainingWatch
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place


def watch_lightning(watch: TorchWatch, module: Any) -> None:
    """Look at the `Trainer` and the modules of `lightning.pytorch` or `pytorch_lightning`."""
    recorder = watch.state.recorder
    package = module.__name__
    kind, logging = module.Trainer, module.LightningModule
    begin = recorder.watching(functools.partial(_noting, watch, package))

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = begin(nearest_place(sys._getframe(1)))
        if begun is None:
            return go_on(self, *args, **kwargs)
        noting, noted = begun
        self.callbacks.append(noting)
        try:
            return go_on(self, *args, **kwargs)
        finally:
            if noting in self.callbacks:
                self.callbacks.remove(noting)
            recorder.watching(noted.finish)(self)

    def passed_on_check(go_on: Any, self: Any) -> Any:
        watch.state.is_paused = True
        try:
            return go_on(self)
        finally:
            watch.state.is_paused = False

    watch_door(kind, "fit", passed_on)
    watch_door(kind, "_run_sanity_check", passed_on_check)
    _watch_log(watch, logging)
    _watch_evaluations(watch, importlib.import_module(f"{package}.loops.evaluation_loop")._EvaluationLoop)


def _watch_evaluations(watch: TorchWatch, kind: Any) -> None:
    """Note what an evaluation comes to: Lightning joins what each of its batches has logged."""

    def note(logged: Any) -> None:
        for name, value in {name: value for of_set in logged for name, value in of_set.items()}.items():
            watch.state.recorder.add_number(str(name), float(plain(value) if is_plain(value) else value), "logged")

    noted = watch.state.recorder.watching(note)

    def passed_on(go_on: Any, self: Any) -> Any:
        logged = go_on(self)
        if not watch.state.is_paused:
            noted(logged)
        return logged

    watch_door(kind, "on_run_end", passed_on)


def _watch_log(watch: TorchWatch, kind: Any) -> None:
    """Note each value that a module logs in training; on a GPU only of the updates that are looked at, as reading one waits."""
    recorder = watch.state.recorder

    def note(name: Any, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            if not is_plain(value) or value.numel() != 1:
                return
            if value.device.type != "cpu" and not recorder.is_due(watch.state.update + 1):
                return
        elif not isinstance(value, (int, float)):
            return
        recorder.add_number(str(name), float(plain(value) if isinstance(value, torch.Tensor) else value), "logged")

    noted = recorder.watching(note)

    def passed_on(go_on: Any, self: Any, name: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        trainer = getattr(self, "_trainer", None)
        if not watch.state.is_paused and not getattr(trainer, "evaluating", False):
            noted(name, value)
        return go_on(self, name, value, *args, **kwargs)

    watch_door(kind, "log", passed_on)


class LightningNotes(TrainingWatch):
    """Notes the training's begin and the monitored numbers of evaluations, and ends it when its time is over."""

    kind = TrainingKind.LIGHTNING

    def __init__(self, watch: TorchWatch, where: Place | None) -> None:
        super().__init__(watch, where)
        self._evaluated: dict[int, list[float]] = {}

    def begin(self, trainer: Any, module: Any) -> None:
        """The fit begins; its loader is made by now, so that asking for the planned updates makes none."""
        planned = trainer.estimated_stepping_batches if module.automatic_optimization else math.inf
        is_known = math.isfinite(planned) and planned >= 0
        self._begin_training(module, max(0, int(planned) - trainer.global_step) if is_known else None)

    def note_evaluated(self, trainer: Any, module: Any) -> None:
        """An evaluation has ended."""
        if trainer.sanity_checking:
            return
        for number, callback in enumerate(trainer.callbacks):
            value = trainer.callback_metrics.get(getattr(callback, "monitor", None))
            if value is not None:
                self._evaluated.setdefault(number, []).append(
                    float(plain(value) if isinstance(value, torch.Tensor) else value)
                )

    def end_if_over(self, trainer: Any) -> None:
        """Ask for the end after this update, whatever the fewest epochs and steps are."""
        if self._recorder.is_over():
            trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
            trainer.should_stop = True
            if self._training is not None:
                self._training.is_cut = True

    def finish(self, trainer: Any) -> None:
        """`fit` is left."""
        if self._training is None and trainer.state.finished and not self._recorder.is_over():
            self._begin_training(trainer.lightning_module, 0)  # it trains nothing: all of its steps were made before
        if self._end_training(trainer.lightning_module) is not None:
            for number, values in self._evaluated.items():
                self._add_best_of(trainer.callbacks[number], values)

    def _add_best_of(self, callback: Any, values: list[float]) -> None:
        """What ModelCheckpoint and EarlyStopping hold as best."""
        score = getattr(callback, "best_model_score", getattr(callback, "best_score", None))
        if score is None or not hasattr(callback, "monitor"):
            return
        near = [number for number, value in enumerate(values) if abs(value - float(score)) <= 1e-6 * (1 + abs(value))]
        higher = {"max": True, "min": False}.get(str(getattr(callback, "mode", None)))
        self._add_best(callback.monitor, higher, values, near[0] if near else None)


def _noting(watch: TorchWatch, package: str, where: Place | None) -> tuple[Any, LightningNotes]:
    """A callback of this package, and what it tells."""
    fit, watching = LightningNotes(watch, where), watch.state.recorder.watching
    begin, note = watching(fit.begin), watching(fit.note_evaluated)
    methods = {
        "on_train_start": lambda self, trainer, module: begin(trainer, module),
        "on_validation_end": lambda self, trainer, module: note(trainer, module),
        "on_train_batch_end": lambda self, trainer, *more, **further: fit.end_if_over(trainer),
    }
    return type("Noting", (importlib.import_module(package).Callback,), methods)(), fit
