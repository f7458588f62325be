"""What a Keras model answers for rows that it was trained and evaluated on, asked after the run, beside their labels."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.keras.input.nested_values import join_batches, leaves, map_leaves
from trainwright.adapters.keras.input.sources import Source
from trainwright.rehearsal.record import Answers, LabelKind, Output, PairSource
from trainwright.rehearsal.recorder import MOST_ROWS, MOST_TRAINED_ROWS, Recorder, spread
from trainwright.rehearsal.sampling import FEW, Offer
from trainwright.rehearsal.watch.keras.rows import SetRows, rows_of_stream
from trainwright.rehearsal.watch.keras.weights import values_of
from trainwright.rehearsal.watch.labelled import (
    KINDS,
    LabelledOutputs,
    class_labels,
    compare,
    inputs_of,
    is_widened,
    keys_of,
)
from trainwright.seams.failures.blame import is_own
from trainwright.seams.keras.loss import LossKind, kind_of

# Rows that the model answers at once.
CHUNK = 128
# Labels of one output that are counted, evenly spaced.
MOST_COUNTED = 200_000


def as_whole(row: NDArray[Any], reads_tokens: bool) -> NDArray[Any]:
    """A row as it is shown: token ids that were given as floats are whole."""
    is_whole = reads_tokens and row.ndim == 1 and len(row) > FEW and row.dtype.kind == "f"
    return row.astype(np.int64) if is_whole and bool((row == np.round(row)).all()) else row


@dataclass(kw_only=True)
class Head:
    """One output of the model, by its name, with the answers and labels of the same rows."""

    name: str
    answers: NDArray[Any]
    labels: NDArray[Any]
    form: str
    ignored: int | None
    counts: NDArray[np.bool_] | None


@dataclass(kw_only=True)
class Question:
    """Rows that a model is asked about after the run, with the weights that it has then."""

    model: Any
    number: int
    """The model's."""
    weights: list[NDArray[Any]] | None
    """None: those that it has at the end of the run."""
    update: int
    loss: Any
    trains: bool
    rows: SetRows | None = None
    stream: Source | None = None
    """Gives the rows, if there are none yet."""
    labels: Any = None
    """Of all rows, in training."""
    keys: Any = None
    data: int = 0
    evaluation: int | None = None
    training: int = 0


def losses_by_output(loss: Any, names: list[str]) -> list[Any]:
    """The loss of each output."""
    if isinstance(loss, Mapping):
        return [loss.get(name) for name in names]
    if isinstance(loss, (list, tuple)):
        return [*loss, *[None] * len(names)][: len(names)]
    return [loss] * len(names)


def by_name(structure: Any, names: list[str] | None = None) -> dict[str, Any]:
    """A structure's tensors by their output names."""
    if structure is None:
        return {}
    if isinstance(structure, Mapping):
        return {str(k): v for k, v in structure.items() if not isinstance(v, (Mapping, list, tuple))}
    if isinstance(structure, (list, tuple)):
        known = names if names and len(names) == len(structure) else [str(i) for i in range(len(structure))]
        return dict(zip(known, structure))
    return {"": structure}


@dataclass
class Asking:
    """Asks the questions and writes the answers."""

    recorder: Recorder
    keras: Any
    backend: str
    _compiled: dict[int, Any] = field(default_factory=dict)

    def ask(self, question: Question) -> None:
        """Write what the model answers for the rows, and count the labels that it was trained with."""
        rows = question.rows or (rows_of_stream(question.stream) if question.stream is not None else None)
        if rows is None or rows.y is None or not rows.count or question.loss is None:
            return
        try:
            with self._weights(question):
                heads = self._heads(question, self._part(rows, spread(rows.count, MOST_ROWS)))
        except Exception as error:  # the model's own: it takes no such rows
            if is_own(error):
                raise
            return
        same: Counter[tuple[LabelKind, int]] = Counter()
        at = spread(rows.count, MOST_ROWS)
        reads_tokens = self._reads_tokens(question.model)
        for head in heads:
            found = compare(head.form, head.answers, head.labels, head.counts, head.ignored)
            if found is None:
                if KINDS[head.form] != LabelKind.CLASSES and is_widened(head.answers, head.labels):
                    self.recorder.record.widened = (head.answers.shape, head.labels.shape)
                continue
            if found.kept is not None and not len(found.kept):  # each row's weight is 0
                continue
            output = Output(kind=found.kind, width=found.width, number=same[found.kind, found.width])
            same[found.kind, found.width] += 1
            part = self._part(rows, at if found.kept is None else at[found.kept])
            single = found.kept is not None
            if question.trains:
                self._count(output, head, question.labels if question.labels is not None else rows.y)
                if single:
                    self._note_trained(output, head, rows, question, reads_tokens, set(at[found.kept].tolist()))
            answers = Answers(
                output=output,
                update=question.update,
                trains=question.trains,
                **found.arrays(),
                keys=keys_of(leaves(part.x)) if single else None,
                numbers=part.numbers if single else None,
                inputs=inputs_of(leaves(part.x), reads_tokens) if single else None,
                total=rows.total,
                model=question.number,
                evaluation=question.evaluation,
                data=question.data,
                source=PairSource.FIT,
            )
            self.recorder.add_answers(answers)
            self._offer(answers, part, reads_tokens, found)

    def _offer(self, answers: Answers, part: SetRows, reads_tokens: bool, found: LabelledOutputs) -> None:
        """Let some rows be shown."""
        if self.recorder.sampler is None:
            return
        rows, of_rows = np.arange(part.count), found.of_rows
        if of_rows is not None and found.places is not None:
            rows = found.places // max(1, of_rows.shape[1])
            answers = replace(answers, numbers=None if part.numbers is None else part.numbers[rows])
        if len(answers.labels) != len(rows) or not len(rows):
            return
        names = [str(name) for name in part.x] if isinstance(part.x, Mapping) else []
        inputs = leaves(part.x)
        names = names if len(names) == len(inputs) else [str(i + 1) for i in range(len(inputs))]
        tokens = next((a for a in inputs if reads_tokens and a.ndim == 2 and a.shape[1] > FEW), None)
        self.recorder.offer(
            Offer(
                answers=answers,
                rows=rows,
                take=lambda row: [(n, as_whole(a[row], reads_tokens)) for n, a in zip(names, inputs)],
                lengths=None if tokens is None else np.count_nonzero(tokens, axis=1),
                labels=None if of_rows is None else of_rows.__getitem__,
            )
        )

    def _part(self, rows: SetRows, at: Any) -> SetRows:
        def pick(array: NDArray[Any]) -> Any:
            return array[at]

        numbers = None if rows.numbers is None else rows.numbers[at]
        x, y, weight = (map_leaves(pick, part) for part in (rows.x, rows.y, rows.weight))
        return SetRows(x=x, y=y, weight=weight, numbers=numbers, total=rows.total)

    def _heads(self, question: Question, rows: SetRows) -> list[Head]:
        model = question.model
        answers, masks = self._answers(model, rows.x)
        names = [str(n) for n in getattr(model, "output_names", None) or ()]
        outputs, labels = by_name(answers, names), by_name(rows.y, names)
        weights = by_name(rows.weight, names)
        if len(outputs) == 1 and len(labels) == 1:
            labels = dict(zip(outputs, labels.values()))
        heads = []
        for name, loss in zip(outputs, losses_by_output(question.loss, list(outputs))):
            kind = self._kind(loss)
            if kind is None or not kind.form or name not in labels:
                continue
            weight = weights.get(name, weights.get("") if len(weights) == 1 else None)
            counts = masks.get(name)
            if weight is not None and weight.ndim <= 2 and len(weight) == rows.count:
                weight = weight[:, 0] if weight.ndim == 2 and weight.shape[1] == 1 else weight
                heavy = weight != 0
                counts = heavy if counts is None or counts.shape != heavy.shape else counts & heavy
            right, ignored = np.asarray(labels[name]), kind.options.get("ignore_index")
            heads.append(
                Head(name=name, answers=outputs[name], labels=right, form=kind.form, ignored=ignored, counts=counts)
            )
        return heads

    def _kind(self, loss: Any) -> LossKind | None:
        try:
            return kind_of(self.keras.losses.get(loss))
        except ValueError:  # a name that the model's compilation alone knows
            return None

    def _answers(self, model: Any, x: Any) -> tuple[Any, dict[str, NDArray[np.bool_]]]:
        """The model's outputs in evaluation mode, and their masks."""
        count = len(leaves(x)[0])
        parts: list[Any] = []
        masks: list[dict[str, Any]] = []
        call = self._call(model)
        names = [str(n) for n in getattr(model, "output_names", None) or ()]
        for first in range(0, count, CHUNK):
            given = map_leaves(itemgetter(slice(first, first + CHUNK)), x)
            out = call(given)
            parts.append(map_leaves(values_of, out))
            found = {n: getattr(t, "_keras_mask", None) for n, t in by_name(out, names).items()}
            masks.append({n: values_of(m) for n, m in found.items() if m is not None})
        whole = join_batches(parts)
        kept = {n: np.concatenate([m[n] for m in masks]) for n in masks[0] if all(n in m for m in masks)}
        return whole, {n: m.astype(bool) for n, m in kept.items()}

    def _call(self, model: Any) -> Any:
        convert = getattr(self.keras.ops, "convert_to_tensor", None) if hasattr(self.keras, "ops") else None

        def tensor(array: NDArray[Any]) -> Any:
            if convert is not None and array.dtype.kind not in "OUS":
                return convert(array)
            import tensorflow as tf  # the script's own backend

            return tf.convert_to_tensor(array)

        if self.backend == "torch":
            import torch

            def quiet(x: Any) -> Any:
                with torch.no_grad():
                    return model(map_leaves(tensor, x), training=False)

            return quiet
        if self.backend == "jax":  # operation by operation, each would be compiled by itself
            if id(model) not in self._compiled:
                self._compiled[id(model)] = self._jitted(model, tensor)
            return self._compiled[id(model)]
        return lambda x: model(map_leaves(tensor, x), training=False)

    def _jitted(self, model: Any, tensor: Any) -> Any:
        import jax

        variables = list(model.variables)

        def pure(values: list[Any], x: Any) -> Any:
            with self.keras.StatelessScope(state_mapping=list(zip(variables, values))):
                return model(x, training=False)

        compiled = jax.jit(pure)

        def call(x: Any) -> Any:
            count = len(leaves(x)[0])
            padded = map_leaves(
                lambda a: np.concatenate([a, np.repeat(a[-1:], CHUNK - count, 0)]), x
            )  # one compilation
            out = compiled([v.value for v in variables], map_leaves(tensor, padded))
            return map_leaves(lambda t: t[:count], out)

        return call

    @contextlib.contextmanager
    def _weights(self, question: Question) -> Any:
        """Give the model the question's weights."""
        if question.weights is None:
            yield
            return
        variables = list(question.model.weights)
        now = [values_of(v) for v in variables]
        try:
            for variable, value in zip(variables, question.weights):
                variable.assign(value)
            yield
        finally:
            for variable, value in zip(variables, now):
                variable.assign(value)

    def _reads_tokens(self, model: Any) -> bool:
        """Whether the model looks numbers up in a table."""
        layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else ()
        return any("embedding" in type(layer).__name__.lower() for layer in layers)

    def _count(self, output: Output, head: Head, labels: Any) -> None:
        """Count the labels of all rows."""
        found = by_name(labels)
        right = found.get(head.name, next(iter(found.values())) if len(found) == 1 else None)
        if right is None:
            right = head.labels
        right = np.asarray(right)
        right = right[spread(len(right), max(1, MOST_COUNTED // max(1, right[:1].size)))]
        if output.kind == LabelKind.CLASSES:
            classes = class_labels(right, (len(right), *head.answers.shape[1:]))
            if classes is not None:
                classes = classes.reshape(-1)
                kept = classes if head.ignored is None else classes[classes != head.ignored]
                self.recorder.count_labels(output, kept)
        elif len(right) and right[:1].size == output.width:
            wide = right.reshape(len(right), -1).astype(np.float64)
            self.recorder.count_labels(output, (wide > 0).astype(np.float64) if head.form == "signs" else wide)

    def _note_trained(
        self, output: Output, head: Head, rows: SetRows, question: Question, reads_tokens: bool, answered: set[int]
    ) -> None:
        """Note the rows that training saw beyond those that are asked about, with inputs for some of them."""
        chosen = spread(rows.count, MOST_TRAINED_ROWS)
        rest = np.array([i for i in chosen.tolist() if i not in answered], dtype=np.int64)
        labels = by_name(rows.y)
        right = labels.get(head.name, next(iter(labels.values())) if len(labels) == 1 else None)
        if not len(rest) or right is None:
            return
        part = self._part(rows, rest)
        right = np.asarray(right)[rest]
        if output.kind == LabelKind.CLASSES:
            found: Any = class_labels(right, (len(rest), *head.answers.shape[1:]))
        else:
            found = right.reshape(len(rest), -1).astype(np.float64)
            found = found if found.shape[1] == output.width else None
        if found is not None:
            arrays = leaves(part.x)
            self.recorder.add_trained(output, keys_of(arrays), found, inputs_of(arrays, reads_tokens))
