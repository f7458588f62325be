"""Answers beside labels, and the rows that they are of: arrays in the form of the record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import SAMPLED_WIDTH, TOKEN_GROUPS, Floats, Integers, LabelKind
from trainwright.rehearsal.recorder import MOST_INPUTS, MOST_ROWS, spread
from trainwright.rehearsal.sampling import FEW
from trainwright.stages import IGNORED_LABEL

Array = NDArray[Any]
# The least probability that a logarithm is taken of, as in Keras.
LEAST = 1e-7
# What the labels are of outputs in the forms that losses take: scores of classes, probabilities of these, scores of yes,
# probabilities of yes, scores of a label above 0, and numbers.
KINDS = {
    "classes": LabelKind.CLASSES,
    "shares": LabelKind.CLASSES,
    "logits": LabelKind.BINARY,
    "binary": LabelKind.BINARY,
    "signs": LabelKind.BINARY,
    "numbers": LabelKind.NUMBERS,
}


@dataclass(frozen=True, kw_only=True)
class LabelledOutputs:
    """Outputs and labels of the same rows, in the form of the record."""

    kind: LabelKind
    width: int
    labels: Array
    guesses: Integers | None = None
    log_losses: Floats | None = None
    certainties: Floats | None = None
    values: Floats | None = None
    kept: Integers | None = None
    """The rows that count, of those that were given; None: there are several labels in a row."""
    places: Integers | None = None
    """Where there are: which of all places these are, row by row."""
    of_rows: Integers | None = None
    """And all labels of each row, `IGNORED_LABEL` where they do not count."""

    def arrays(self) -> dict[str, Any]:
        """What `Answers` keeps of them."""
        names = ("labels", "guesses", "log_losses", "certainties", "values")
        per_row = 1 if self.of_rows is None else max(1, self.of_rows.shape[1])
        return {**{name: getattr(self, name) for name in names}, "per_row": per_row}


def is_widened(outputs: Array, labels: Array) -> bool:
    """Whether an element-wise loss spreads one of them over the other."""
    if outputs.size == labels.size:
        return False
    try:
        np.broadcast_shapes(outputs.shape, labels.shape)
    except ValueError:
        return False
    return True


def class_labels(labels: Array, outputs: tuple[int, ...]) -> Integers | None:
    """Class numbers, one for each place, of class numbers or one-hot rows; None: their shape fits neither."""
    places = outputs[:-1]
    if labels.shape == outputs and outputs[-1] > 1:
        return np.asarray(labels.argmax(-1), dtype=np.int64)
    if labels.size != int(np.prod(places)) or not np.isfinite(labels.astype(np.float64)).all():
        return None
    return np.asarray(labels.reshape(places), dtype=np.int64)


def compare(
    form: str, outputs: Array, labels: Array, counts: Array | None = None, ignored: int | None = None
) -> LabelledOutputs | None:
    """Outputs beside labels, of classes at most `MOST_ROWS`, evenly spaced; None: they do not fit each other.

    Args:
        form: of the outputs, one of `KINDS`.
        counts: which rows, or places in them, count in the loss (masks, weights); None: all.
        ignored: a class whose rows do not count.
    """
    outputs = outputs.astype(np.float64)
    if KINDS[form] == LabelKind.CLASSES:
        return _compare_classes(form, outputs, labels, counts, ignored)
    if labels.dtype.kind not in "fiub" or outputs.size != labels.size or not outputs.ndim:
        return None
    values, right = outputs.reshape(len(outputs), -1), labels.astype(np.float64).reshape(len(outputs), -1)
    columns = spread(values.shape[1], SAMPLED_WIDTH)
    kept = np.flatnonzero(counts) if counts is not None and counts.shape == (len(values),) else np.arange(len(values))
    values, right = values[kept][:, columns], right[kept][:, columns]
    if form in ("logits", "signs"):
        values = 1.0 / (1.0 + np.exp(-np.clip(values, -50.0, 50.0)))
    if form == "signs":
        right = (right > 0).astype(np.float64)
    return LabelledOutputs(kind=KINDS[form], width=len(columns), labels=right, values=values, kept=kept)


def _compare_classes(
    form: str, outputs: Array, labels: Array, counts: Array | None, ignored: int | None
) -> LabelledOutputs | None:
    width = outputs.shape[-1]
    found = class_labels(labels, outputs.shape) if outputs.ndim > 1 and labels.dtype.kind in "fiub" else None
    if found is None:
        return None
    is_single = found.ndim == 1
    right, scores = found.reshape(-1), outputs.reshape(-1, width)
    good = np.ones(len(right), dtype=bool)
    if counts is not None and counts.shape == found.shape[: counts.ndim]:
        good &= np.broadcast_to(counts.reshape(counts.shape + (1,) * (found.ndim - counts.ndim)), found.shape).reshape(
            -1
        )
    if ignored is not None:
        good &= right != ignored
    kept = np.flatnonzero(good)
    kept = kept[spread(len(kept), MOST_ROWS)]
    if len(kept) < len(right):  # a copy of all scores takes its time
        right, scores = right[kept], scores[kept]
    is_inside = (right >= 0) & (right < width)
    inside = np.where(is_inside, right, 0)
    if form == "classes":
        guesses, losses, certainties = read_scores(scores, inside)
    else:  # as Keras reads them: divided by their sum, and cut
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(scores / scores.sum(-1, keepdims=True))
        guesses, certainties = scores.argmax(-1).astype(np.int64), shares.max(-1, initial=0.0)
        losses = -np.log(np.clip(shares[np.arange(len(right)), inside], LEAST, 1.0))
    return LabelledOutputs(
        kind=LabelKind.CLASSES,
        width=width,
        labels=right,
        guesses=guesses,
        log_losses=np.where(is_inside & (losses != np.inf), losses, -np.log(LEAST)),
        certainties=certainties,
        kept=kept if is_single else None,
        places=None if is_single else kept,
        of_rows=None if is_single else np.where(good, found.reshape(-1), IGNORED_LABEL).reshape(len(found), -1),
    )


def read_scores(scores: Floats, labels: Integers) -> tuple[Integers, Floats, Floats]:
    """Of scores, or of log probabilities, which are their own normalized form: the guesses, minus the logarithms of the labels'
    probabilities, and the probabilities of the guesses."""
    places, guesses = np.arange(len(labels)), scores.argmax(1) if len(scores) else np.zeros(0, np.int64)
    highest = scores.max(1, initial=-np.inf)
    total: Floats = highest + np.log(np.exp(scores - highest[:, None]).sum(1))
    return guesses, total - scores[places, labels], np.exp(scores[places, guesses] - total)


def keys_of(arrays: Sequence[Array]) -> Integers:
    """One number for each row: equal rows have equal ones."""
    parts = [np.ascontiguousarray(a) for a in arrays]
    count = len(parts[0])
    keys = np.empty(count, dtype=np.int64)
    for i in range(count):
        digest = hashlib.blake2b(digest_size=8)
        for part in parts:
            row = part[i : i + 1]
            digest.update(repr(row.tolist()).encode() if row.dtype.kind in "OUS" else row.tobytes())
        keys[i] = int.from_bytes(digest.digest(), "little", signed=True)
    return keys


def inputs_of(arrays: Sequence[Array], reads_tokens: bool) -> Floats | None:
    """The rows as plain numbers; token ids as counts. None: too wide, or no numbers.

    Args:
        reads_tokens: whether the model looks whole numbers up in a table.
    """
    chosen = []
    for part in arrays:
        if part.dtype.kind not in "fiub":
            return None
        flat = part.reshape(len(part), -1)
        is_text = part.ndim == 2 and part.dtype.kind in "iu" and part.dtype.itemsize > 1 and flat.shape[1] > FEW
        chosen.append((flat, reads_tokens and is_text))
    return row_inputs(chosen)


def row_inputs(arrays: Iterable[tuple[Array, bool]]) -> Floats | None:
    """Rows as plain numbers; None: there are none, or they are too wide.

    Args:
        arrays: (rows, numbers) each, and whether it holds token ids: these are counted.
    """
    columns = [_count_tokens(array) if holds_tokens else array.astype(np.float32) for array, holds_tokens in arrays]
    if not columns or sum(one.shape[1] for one in columns) > MOST_INPUTS:
        return None
    return np.concatenate(columns, 1)


def _count_tokens(ids: Array) -> Floats:
    """The logarithms of how often the tokens of each group come in a row; padding does not count."""
    counts = np.zeros((len(ids), TOKEN_GROUPS), np.float32)
    np.add.at(counts, (np.arange(len(ids))[:, None], ids.astype(np.int64) % TOKEN_GROUPS), 1.0)
    counts[:, 0] = 0
    return np.log1p(counts)
