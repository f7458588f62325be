"""Hugging Face's Trainer: where its trainings begin and end, what it logs, and which weights it calls best."""

from __future__ import annotations

import functools
import re
import sys
from typing import Any

from transformers.trainer_callback import TrainerCallback

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.watch.guessing import watch_trainer_metrics
from trainwright.rehearsal.watch.torch.losses import watch_smoothing
from trainwright.rehearsal.watch.torch.state import WatchState, weights_fingerprint
from trainwright.rehearsal.watch.torch.watch import TorchWatch, TrainingWatch
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place

# What `log` is given beside the training's own numbers.
_NOT_OF_TRAINING = re.compile(r"runtime|per_second|epoch|flos|(?<!loss_)step|memory|num_input_tokens")


def watch_trainer(watch: TorchWatch, module: Any) -> None:
    """Look at the `Trainer` of `transformers.trainer`."""
    kind, recorder = module.Trainer, watch.state.recorder
    note = recorder.watching(functools.partial(_log, watch.state))
    add = recorder.watching(functools.partial(_add, watch))

    def passed_on_log(go_on: Any, self: Any, logs: Any, *args: Any, **kwargs: Any) -> Any:
        note(logs)
        return go_on(self, logs, *args, **kwargs)

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = add(nearest_place(sys._getframe(1)), self)
        if begun is None:
            return go_on(self, *args, **kwargs)
        try:
            return go_on(self, *args, **kwargs)
        finally:
            self.callback_handler.callbacks[:] = [c for c in self.callback_handler.callbacks if c is not begun]
            recorder.watching(begun.finish)(self)

    watch_door(kind, "train", passed_on)
    watch_door(kind, "log", passed_on_log)
    watch_smoothing(watch.state, watch.meetings, module.LabelSmoother)
    watch_trainer_metrics(recorder, kind)


def _log(state: WatchState, logs: Any) -> None:
    for name, value in dict(logs).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not _NOT_OF_TRAINING.search(name):
            state.recorder.add_number(name, float(value), "logged")


class Noting(TrainingWatch, TrainerCallback):
    """Notes the training's begin and the monitored number of its evaluations, and ends it when its time is over."""

    kind = TrainingKind.TRAINER

    def __init__(self, watch: TorchWatch, where: Place | None) -> None:
        super().__init__(watch, where)
        self._evaluated: list[tuple[float, float]] = []
        """The number, and the fingerprint of the weights that have it."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The Trainer knows how many updates it will make."""
        self._recorder.watching(self._begin)(state, more.get("model"))

    def _begin(self, state: Any, model: Any) -> None:
        planned = int(state.max_steps) - int(state.global_step) if state.max_steps > 0 else None
        self._begin_training(model, planned)

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The Trainer has evaluated."""
        self._recorder.watching(self._note_evaluated)(args, more)

    def _note_evaluated(self, args: Any, more: Any) -> None:
        name = args.metric_for_best_model
        metrics = more.get("metrics") or {}
        if args.load_best_model_at_end and name and more.get("model") is not None:
            value = metrics.get(name if name.startswith("eval_") else f"eval_{name}")
            if value is not None:
                self._evaluated.append((float(value), weights_fingerprint(more["model"])))

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        """End the training after this update, if its time is over."""
        if self._recorder.is_over():
            if self._training is not None and state.global_step < state.max_steps:
                self._training.is_cut = True
            control.should_training_stop = True
            control.should_evaluate = control.should_save = False
        return control

    on_epoch_end = on_step_end  # takes back what the end of an epoch asks for

    def finish(self, trainer: Any) -> None:
        """`train()` is left."""
        after, args = self._end_training(trainer.model), trainer.args
        if after is not None and self._evaluated:
            kept = [number for number, (_, weights) in enumerate(self._evaluated) if weights == after]
            values = (value for value, _ in self._evaluated)
            self._add_best(args.metric_for_best_model, args.greater_is_better, values, kept[-1] if kept else None)


def _add(watch: TorchWatch, where: Place | None, trainer: Any) -> Noting:
    made = Noting(watch, where)
    watch.state.tables = {name: getattr(trainer, name, None) for name in ("train_dataset", "eval_dataset")}
    trainer.callback_handler.callbacks.append(made)  # not by `add_callback`, which users override
    return made
