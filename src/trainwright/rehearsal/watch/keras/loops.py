"""What is noted of trainings with Keras that no `fit` runs: batches given one by one, loops that apply gradients."""

from __future__ import annotations

import math
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.nested_values import count_rows, join_batches, leaves, map_leaves
from trainwright.rehearsal.record import Pass, Training
from trainwright.rehearsal.watch.keras.answers import Question
from trainwright.rehearsal.watch.keras.rows import SetRows, array_of
from trainwright.rehearsal.watch.keras.watch import KerasWatch
from trainwright.rehearsal.watch.keras.weights import fingerprint, values_of
from trainwright.seams.keras.loss import kind_of
from trainwright.seams.source.places import user_place
from trainwright.tensors.keras.objects import rate_of
from trainwright.tensors.keras.which_keras import use_version_of

# Batches of one training, or of one evaluation, that are kept to ask the model about: the last ones.
MOST_KEPT = 16
# Calls of models whose outputs a loss may be given next.
MOST_RECENT = 4
# Operations that leave a tensor's rows what they are.
_PLAIN_UNARY = ("Cast", "Reshape", "ExpandDims", "Squeeze", "Identity")


@dataclass
class Stepping:
    """An optimizer outside of `fit`."""

    optimizer: Any
    model: Any = None
    steps: int = 0
    counted: int | None = None
    """Its own count of steps when it was last read; None: its steps are seen one by one."""


@dataclass
class KeptBatches:
    """Batches that a model was trained or evaluated with, outside of `fit`."""

    model: Any
    loss: Any
    trains: bool
    is_noisy: bool = False
    """Whether the model was in training mode, with layers that differ in it."""
    update: int = -1
    evaluation: int | None = None
    batches: deque[tuple[Any, Any]] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))


@dataclass
class Door:
    """A loss inside a compiled function: where its labels and the model's inputs are among the function's tensors."""

    kept: KeptBatches
    inputs: int
    labels: int


@dataclass
class Compiled:
    """A compiled function of the script's own."""

    steppings: list[Stepping] = field(default_factory=list)
    doors: list[Door] = field(default_factory=list)
    calls: int = 0


class Loops:
    """What is known of such trainings."""

    def __init__(self, watch: KerasWatch) -> None:
        self.watch, self.recorder = watch, watch.recorder
        self.steppings: dict[int, Stepping] = {}
        self.kept: dict[tuple[int, bool, int], KeptBatches] = {}
        self.recent: deque[tuple[Any, Any, Any, bool]] = deque(maxlen=MOST_RECENT)
        self.compiled: weakref.WeakKeyDictionary[Any, Compiled] = weakref.WeakKeyDictionary()
        self.running: list[tuple[Any, Any]] = []
        """Compiled functions that are being called, and the frames that call them."""
        self.depth = 0
        self.seen_outputs: Any = None
        """The outputs that a loss or a metric was last given."""
        self.last_update = 0
        self.training: Training | None = None

    # Updates

    def stepping(self, optimizer: Any, model: Any, variables: Sequence[Any] | None) -> Stepping:
        """The optimizer that is about to step; a loop begins with its first step."""
        number = self.recorder.number_of(optimizer)
        if number not in self.steppings:
            use_version_of(optimizer)
            self.steppings[number] = Stepping(optimizer, model)
            self.watch.followed.begin(model, optimizer, list(variables) if variables is not None else None)
        known = self.steppings[number]
        self._begin(self.running[0][1] if self.running else sys._getframe(3), model)
        return known

    def _begin(self, frame: Any, model: Any) -> None:
        if self.training is not None and self.recorder.training is self.training:
            return
        models = (self.recorder.number_of(model),) if model is not None else ()
        if self.recorder.training is not None:  # a Trainer's or a fit's: their steps are theirs
            return
        begins = self.recorder.next_training(user_place(frame), models=models)
        self.training = self.recorder.begin_training(begins)

    def stepped(self, known: Stepping, gradients: Sequence[Any] | None = None, count: int = 1) -> None:
        """It has stepped."""
        if not known.steps and known.model is not None:  # a model may have been built only now
            self.watch.followed.begin(known.model, known.optimizer)
        for _ in range(count):
            known.steps += 1
            self.recorder.end_update()
        updates = self.last_update = self.recorder.record.updates
        if self.recorder.is_due(updates):
            norm = None if gradients is None else norm_of(gradients)
            self.recorder.add_update(known.optimizer, updates, rate_of(known.optimizer), norm)

    # Batches

    def keep(self, known: KeptBatches, x: Any, y: Any) -> None:
        """Keep a batch, to ask the model about it after the run."""
        updates = self.recorder.record.updates
        if not known.trains and known.update != updates:  # a further evaluation pass
            known.batches.clear()
            known.evaluation = self._begin_pass(known)
        known.update = updates
        if known.trains or len(known.batches) < MOST_KEPT:
            known.batches.append((map_leaves(array_of, x), map_leaves(array_of, y)))

    def kept_of(self, model: Any, loss: Any, trains: bool) -> KeptBatches:
        """Where this model's batches are kept."""
        key = (self.recorder.number_of(model), trains, self.recorder.number_of(loss))
        return self.kept.setdefault(key, KeptBatches(model, loss, trains))

    def _begin_pass(self, known: KeptBatches) -> int:
        made = Pass(
            number=0,
            update=self.recorder.record.updates,
            model=self.recorder.number_of(known.model),
            is_trained=False,
            weights=fingerprint(known.model),
            calls=1,
            noisy_calls=int(known.is_noisy),
        )
        return self.watch.note_pass(known.model, made).number

    def finish(self) -> None:
        """Compare weights, and ask the models about the batches that were kept."""
        for known in self.steppings.values():
            if fresh := self._catch_up(known):
                self.stepped(known, count=fresh)
            self.watch.followed.end(known.model, known.optimizer, known.steps)
        # Two optimizers in turn, as in adversarial training: what one fits, the other spoils.
        alone = sum(known.steps > 0 for known in self.steppings.values()) == 1
        for kept in self.kept.values():
            number = self.recorder.number_of(kept.model)
            if self.training is not None and kept.trains and number not in self.training.models:
                self.training.models += (number,)
            if not kept.batches or (kept.trains and not alone):
                continue
            x, y = join_batches(kept.batches)
            count = count_rows([x]) or 0
            self.watch.questions.append(
                Question(
                    model=kept.model,
                    number=number,
                    weights=None,
                    update=self.last_update if kept.trains else kept.update,
                    loss=kept.loss,
                    trains=kept.trains,
                    rows=SetRows(x=x, y=y, total=count),
                    evaluation=kept.evaluation,
                    training=len(self.recorder.record.trainings),
                )
            )

    # Compiled functions

    def _catch_up(self, known: Stepping) -> int:
        """Updates that the optimizer has counted and we have not."""
        if known.counted is None:
            return 0
        iterations = int(values_of(known.optimizer.iterations))
        fresh, known.counted = iterations - known.counted, iterations
        return max(0, fresh)

    def traced(self, known: Stepping) -> None:
        """A step was written into the compiled function that is being called."""
        if self.running:
            compiled = self.compiled.setdefault(self.running[0][0], Compiled())
            if known not in compiled.steppings:
                known.counted = int(values_of(known.optimizer.iterations))
                compiled.steppings.append(known)

    def called(self, function: Any, given: list[Any], result: Any) -> None:
        """A compiled function of the script's own has returned."""
        compiled = self.compiled.get(function)
        if compiled is None:
            return
        compiled.calls += 1
        is_looked_at = self.recorder.is_due(compiled.calls)
        for known in compiled.steppings if is_looked_at else ():
            count = self._catch_up(known)
            if known is compiled.steppings[0] and count and (loss := scalar_of(result)) is not None:
                self.recorder.add_loss(loss)
            if count:
                self.stepped(known, count=count)
        for door in compiled.doors if is_looked_at or not compiled.steppings else ():
            if max(door.inputs, door.labels) < len(given):
                self.keep(door.kept, given[door.inputs], given[door.labels])

    def loss_called(self, loss: Any, labels: Any, outputs: Any) -> None:
        """A loss was called by the script's own code."""
        if (kind := kind_of(loss)) is not None and kind.form:
            self._note_outputs(loss, labels, outputs, is_recorded(self.watch.backend, outputs))

    def metric_called(self, labels: Any, outputs: Any) -> None:
        """A metric was called by the script's own code: on outputs that no loss was given, it evaluates."""
        if outputs is not self.seen_outputs and not is_recorded(self.watch.backend, outputs):
            self._note_outputs(None, labels, outputs, False)

    def _note_outputs(self, loss: Any, labels: Any, outputs: Any, trains: bool) -> None:
        """Keep the batch of a model's outputs. Without a loss, it is read as the training's loss reads it."""
        for model, x, out, is_noisy in reversed(self.recent):
            if not any(leaf is outputs for leaf in leaves(out)):
                continue
            loss = loss if loss is not None else self._loss_of(model)
            if len(leaves(out)) > 1 or loss is None:
                return
            known = self.kept_of(model, loss, trains)
            self.seen_outputs, known.is_noisy = outputs, is_noisy
            if self.running:
                self._open_door(known, x, labels)
            elif not known.trains or self.recorder.is_due(self.recorder.record.updates + 1):
                self.keep(known, x, labels)
            return

    def _loss_of(self, model: Any) -> Any:
        """The only loss that a model was trained with; None if there are several, or none."""
        found = [kept.loss for kept in self.kept.values() if kept.model is model and kept.trains]
        return found[0] if len(found) == 1 else None

    def loss_followed(self, value: Any) -> None:
        """The script asks for a loss's gradients."""
        if self.recorder.is_due(self.recorder.record.updates + 1) and (loss := scalar_of(value)) is not None:
            self.recorder.add_loss(loss)

    def _open_door(self, known: KeptBatches, x: Any, labels: Any) -> None:
        inputs = list(getattr(getattr(labels, "graph", None), "inputs", ()))
        if len(leaves(x)) != 1:
            return
        places = [place_in(inputs, tensor) for tensor in (leaves(x)[0], labels)]
        if None in places:
            return
        compiled = self.compiled.setdefault(self.running[0][0], Compiled())
        if all(door.kept is not known for door in compiled.doors):
            compiled.doors.append(Door(known, int(places[0] or 0), int(places[1] or 0)))


def place_in(inputs: list[Any], tensor: Any) -> int | None:
    """The function's argument that a tensor is, or is a cast or another form of."""
    for _ in range(6):
        for i, one in enumerate(inputs):
            if one is tensor:
                return i
        operation = getattr(tensor, "op", None)
        if operation is None or operation.type not in _PLAIN_UNARY or not len(operation.inputs):
            return None
        tensor = operation.inputs[0]
    return None


def norm_of(gradients: Sequence[Any]) -> float | None:
    """The size of all gradients together."""
    total = 0.0
    for gradient in gradients:
        if gradient is not None:
            if type(gradient).__name__ == "IndexedSlices":  # TensorFlow's, of rows that were looked up
                gradient = gradient.values
            elif getattr(gradient, "is_sparse", False):  # torch's
                gradient = gradient.coalesce().values()
            array = values_of(gradient)
            total += float(np.square(array.astype(np.float64)).sum())
    return math.sqrt(total)


def is_noisy(model: Any) -> bool:
    """Whether some of its layers differ in training mode."""
    layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else ()
    named = [(type(layer).__name__.lower(), layer) for layer in layers]
    return any("batchnorm" in name or ("dropout" in name and getattr(layer, "rate", 1)) for name, layer in named)


def scalar_of(result: Any) -> float | None:
    """The loss among what a step returned: its only or first number."""
    if isinstance(result, dict):
        named = [v for k, v in result.items() if "loss" in str(k).lower()]
        result = named or list(result.values())
    for value in leaves(result):
        shape = getattr(value, "shape", None)
        if shape is not None and not tuple(shape) and "float" in str(getattr(value, "dtype", "")):
            return float(values_of(value))
    return None


def is_recorded(backend: str, outputs: Any) -> bool:
    """Whether gradients will flow from these outputs."""
    if backend == "torch":
        return bool(outputs.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())
    if backend == "tensorflow":
        from tensorflow.python.eager import record

        return bool(record.could_possibly_record())
    return False
