"""Input features that are the label in another form: equal to it, a function of it, or one value for each class.

A task can be made that way on purpose: y = 2 * x[0], or a class that is one of the inputs. There the other features are
drawn independently. So a feature counts as a copy only if the other features tell something about the label, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.probes.labels.alignment import FEWEST_ROWS, PLAINLY_LEARNT, measure_alignment
from trainwright.stages import LabelCopy

# Longer rows are images or texts, where a position has no meaning by itself.
MOST_FEATURES = 4_096
# Most rows are compared only for features that pass on this many.
SCREENED_ROWS = 1_000
# A real label must take many values, and each class must occur often, so that no chance makes a feature fit.
FEWEST_VALUES = 50
FEWEST_A_CLASS = 5
# A yes or no of one feature can coincide with one of another; that takes more rows, and no other feature may come near.
FEWEST_ROWS_OF_TWO = 500
FEWEST_OF_EACH_OF_TWO = 50
NEAR = 0.95
# float32 has seven digits; a column scaled in it loses one.
ROUNDING = 1e-5


def label_copy(
    columns: Mapping[str, Sequence[Any]], label: str, kind: str, accepts: Sequence[str] = ()
) -> LabelCopy | None:
    """Return the features that tell every row's label; None if there are none, or if they may be the task itself.

    Args:
        columns: all rows, by column; sequences of equal length.
        kind: `class` or `real`, as in `LabelFacts`.
        accepts: the model's argument names; if any column has such a name, all others are left out.
    """
    labels = _table(columns.get(label, ()))
    if labels is None or labels.shape[1] != 1 or len(labels) < FEWEST_ROWS:
        return None
    names = [n for n in columns if n != label and len(columns[n]) == len(labels)]
    names = [n for n in names if n in accepts] or names
    tables = {n: t for n in names if (t := _table(columns[n])) is not None}
    if sum(t.shape[1] for t in tables.values()) < 2:
        return None
    for name, table in tables.items():
        found = _of_classes(table, labels[:, 0]) if kind == "class" else _of_numbers(table, labels[:, 0])
        if found is None:
            continue
        relation, features = found
        others = {**tables, name: np.delete(table, features, axis=1)}
        rest = {n: t for n, t in others.items() if t.shape[1]}
        part: dict[str, Any] = {**rest, label: labels[:, 0]}
        score = measure_alignment(part, label, kind) if rest else None
        if score is None or score.score <= PLAINLY_LEARNT:
            return None
        single = table.shape[1] == 1 and np.ndim(columns[name][0]) == 0
        return LabelCopy(
            column=name,
            features=() if single else tuple(int(f) for f in features),
            relation=relation,
            rows=len(labels),
            distinct=len(np.unique(labels)),
            others_score=score.score,
        )
    return None


def _table(values: Sequence[Any]) -> np.ndarray | None:
    """(rows, features) of finite numbers; None for texts, tokens and rows of different lengths."""
    if not len(values) or isinstance(values[0], str) or values[0] is None:
        return None
    array = values if isinstance(values, np.ndarray) else np.stack([np.asarray(v) for v in values])
    table = array.reshape(len(array), -1)
    tokens = table.dtype.kind in "iu" and table.shape[1] > 1
    if table.dtype.kind not in "iufb" or tokens or table.shape[1] > MOST_FEATURES or not np.isfinite(table).all():
        return None
    return table


def _of_numbers(table: np.ndarray, labels: np.ndarray) -> tuple[str, list[int]] | None:
    """The feature that grows or falls with the label in every row, and how; or all that are the label on other scales.

    Several features that do so, each in its own way, are functions of one quantity: t, t ** 2 and t ** 3.
    """
    if len(np.unique(labels)) < FEWEST_VALUES:
        return None
    fitting = list(range(table.shape[1]))
    for rows in (slice(0, SCREENED_ROWS), slice(None)):
        order = np.argsort(labels[rows], kind="stable")
        fitting = [f for f in fitting if _is_monotonic(table[rows, f][order], labels[rows][order])]
    relations = {_relation(table[:, f].astype(np.float64), labels.astype(np.float64)) for f in fitting}
    if not relations or (len(fitting) > 1 and "monotonic" in relations):
        return None
    return ("affine" if len(relations) > 1 else relations.pop()), fitting


def _is_monotonic(values: np.ndarray, labels: np.ndarray) -> bool:
    """Whether values grow (or fall) wherever sorted labels grow, and stay where they stay."""
    steps, apart = np.diff(values.astype(np.float64)), np.diff(labels.astype(np.float64)) > 0
    within = ROUNDING * float(np.ptp(values))
    if not within or bool((np.abs(steps[~apart]) > within).any()):
        return False
    rising = steps[apart] if steps.sum() > 0 else -steps[apart]
    # Rounding may make two neighbors equal, but not many.
    return bool((rising >= 0).all()) and float((rising > 0).mean()) > NEAR


def _relation(values: np.ndarray, labels: np.ndarray) -> str:
    if np.array_equal(values, labels):
        return "equal"
    slope, offset = np.polyfit(labels, values, 1)
    affine = np.abs(values - slope * labels - offset).max() <= 10 * ROUNDING * np.ptp(values)
    return "affine" if affine else "monotonic"


def _of_classes(table: np.ndarray, labels: np.ndarray) -> tuple[str, list[int]] | None:
    """The features with one value for each class, if together they tell the classes apart."""
    classes, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    few = FEWEST_OF_EACH_OF_TWO if len(classes) == 2 else FEWEST_A_CLASS
    if len(classes) < 2 or counts.min() < few or (len(classes) == 2 and len(labels) < FEWEST_ROWS_OF_TWO):
        return None
    firsts = np.unique(index, return_index=True)[1]
    part = slice(0, SCREENED_ROWS)
    fitting = np.flatnonzero((table[part] == table[firsts][index[part]]).all(axis=0))
    fitting = fitting[np.ptp(table[firsts][:, fitting].astype(np.float64), axis=0) > 0]
    own = fitting[(table[:, fitting] == table[firsts][:, fitting][index]).all(axis=0)]
    if not own.size or len(np.unique(table[firsts][:, own], axis=0)) < len(classes):
        return None
    if len(classes) == 2 and _comes_near(np.delete(table, own, axis=1), index):
        return None
    values = table[firsts][:, own[0]]
    return ("equal" if own.size == 1 and np.array_equal(values, classes) else "classes"), [int(f) for f in own]


def _comes_near(table: np.ndarray, index: np.ndarray) -> bool:
    """Whether another feature nearly tells two classes apart, as in a task whose classes are a sharp line."""
    if not table.shape[1]:
        return False
    part = slice(0, SCREENED_ROWS)
    values, truth = table[part].astype(np.float64), index[part].astype(np.float64)
    centred = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    fit = centred.T @ (truth - truth.mean()) / (len(truth) * max(float(truth.std()), 1e-12))
    return bool((np.abs(fit) > NEAR).any())
