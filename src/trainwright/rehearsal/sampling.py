"""Chooses the few rows of each set that are shown one by one, while the script runs; no random numbers are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sample import WORST
from trainwright.rehearsal.record import Answers, Floats, Integers, Kind, Sampled

# How many rows are kept for each reason.
CHOSEN = {"at random": 2, "longest": 1, "shortest": 1, WORST: 3}
# Classes of which a row is kept, so that there is one of the rarest.
MOST_CLASSES = 20
# Sets and outputs whose rows are kept, and values of one row.
MOST_SETS, MOST_VALUES = 8, 1_000_000
# Training rows are those of the last calls: after this growth of the updates they are chosen anew.
ANEW = 1.5
# So many rows are seen before those that were chosen before are forgotten.
FEWEST_ROWS = 32
_GOLDEN = 0x9E3779B97F4A7C15

Arrays = list[tuple[str, NDArray[Any]]]


@dataclass(kw_only=True)
class Offer:
    """The rows of a call that was answered."""

    answers: Answers
    rows: Integers
    """(n,) the row of the call that each answer is of."""
    take: Callable[[int], Arrays]
    """The inputs of a row of the call."""
    lengths: Integers | None = None
    """How long each row of the call is; None: all are alike."""
    labels: Callable[[int], NDArray[Any]] | None = None
    """All labels of a row of the call; None: it has one."""
    ignored: int = -100


@dataclass
class _Set:
    """The rows that are chosen of one set."""

    begins: int
    evaluation: int | None
    seen: int = 0
    classes: Counter[int] = field(default_factory=Counter)
    best: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    kept: dict[int, Sampled] = field(default_factory=dict)
    before: _Set | None = None


class Sampler:
    """Keeps a few rows of each set and output."""

    def __init__(self) -> None:
        self._sets: dict[Any, _Set] = {}

    def offer(self, offer: Offer) -> None:
        """Look at the rows of a call; the last evaluation and the last training calls remain."""
        answers = offer.answers
        of = (answers.output, answers.trains, answers.data, answers.model)
        if of not in self._sets and len(self._sets) >= MOST_SETS:
            return
        known = self._sets.get(of)
        is_other = known is not None and (
            answers.update > ANEW * known.begins + 1 if answers.trains else answers.evaluation != known.evaluation
        )
        if known is None or is_other:
            before = None if known is None else known if known.seen >= FEWEST_ROWS else known.before
            known = self._sets[of] = _Set(answers.update, answers.evaluation, before=before)
        if known.seen >= FEWEST_ROWS:
            known.before = None
        _choose(known, offer)

    def chosen(self) -> list[tuple[Sampled, Arrays]]:
        """The rows that are kept, with their inputs."""
        found = []
        for one in self._sets.values():
            rare = min(one.classes, key=lambda label: (one.classes[label], label), default=None)
            reasons: dict[int, list[str]] = {}
            for reason, best in (one.before or one).best.items() if one.seen < FEWEST_ROWS else one.best.items():
                is_class = reason.startswith("class ")
                if is_class and (reason != f"class {rare}" or len(one.classes) < 2):
                    continue
                for _, number in best:
                    reasons.setdefault(number, []).append("rarest label" if is_class else reason)
            kept = one.before.kept if one.before is not None and one.seen < FEWEST_ROWS else one.kept
            for number, why in reasons.items():
                found.append((replace(kept[number], why=tuple(why)), kept[number].inputs))
        return found


def _choose(known: _Set, offer: Offer) -> None:
    answers = offer.answers
    losses, rights = _losses(answers), None if answers.guesses is None else answers.guesses == answers.labels
    rows = np.unique(offer.rows)
    many = len(rows) < len(offer.rows) or offer.labels is not None
    places = {int(row): np.flatnonzero(offer.rows == row) for row in rows.tolist()}
    numbers = {row: known.seen + i for i, row in enumerate(places)}
    for row, at in places.items():
        loss = float(np.mean(losses[at])) if losses is not None else None
        for reason, score in _reasons(known, offer, row, at, loss, numbers[row], many):
            most = CHOSEN.get(reason, 1)
            best = known.best.setdefault(reason, [])
            if len(best) >= most and score <= best[-1][0]:
                continue
            if numbers[row] not in known.kept:
                made = _sampled(offer, row, at, loss, rights, many)
                if made is None:
                    break
                known.kept[numbers[row]] = made
            best.append((score, numbers[row]))
            best.sort(key=lambda one: -one[0])
            del best[most:]
    known.seen += len(places)
    wanted = {number for best in known.best.values() for _, number in best}
    known.kept = {number: one for number, one in known.kept.items() if number in wanted}


def _reasons(
    known: _Set, offer: Offer, row: int, at: Integers, loss: float | None, number: int, many: bool
) -> list[tuple[str, float]]:
    """Reasons to show a row, each with how well it fits."""
    answers = offer.answers
    key = int(answers.keys[at[0]]) if answers.keys is not None else number + 1
    mixed = (key * _GOLDEN) & 0xFFFFFFFFFFFFFFFF
    found = [("at random", float((mixed ^ (mixed >> 29)) & 0xFFFFFFFF))]
    if offer.lengths is not None:
        found += [("longest", float(offer.lengths[row])), ("shortest", -float(offer.lengths[row]))]
    if loss is not None and np.isfinite(loss):
        found.append((WORST, loss))
    if answers.output.kind != Kind.NUMBERS and answers.output.width <= MOST_CLASSES and not many:
        label = int(np.asarray(answers.labels[at[0]]).reshape(-1)[0])
        known.classes[label] += 1
        found.append((f"class {label}", 0.0))
    return found


def _losses(answers: Answers) -> Floats | None:
    """A loss for each answer, by what its kind means."""
    if answers.output.kind == Kind.CLASSES or answers.values is None:
        return answers.log_losses
    labels = answers.labels.reshape(len(answers.labels), -1).astype(np.float64)
    values = answers.values.reshape(labels.shape).astype(np.float64)
    if answers.output.kind == Kind.BINARY:
        sure = np.clip(np.where(labels > 0.5, values, 1 - values), 1e-7, 1.0)
        return np.asarray(-np.log(sure).mean(1))
    return np.asarray(((labels - values) ** 2).mean(1))


def _sampled(offer: Offer, row: int, at: Integers, loss: float | None, rights: Any, many: bool) -> Sampled | None:
    answers, first = offer.answers, int(at[0])
    inputs = offer.take(row)
    if not inputs or sum(array.size for _, array in inputs) > MOST_VALUES:
        return None
    return Sampled(
        output=answers.output,
        update=answers.update,
        trains=answers.trains,
        data=answers.data,
        model=answers.model,
        evaluation=answers.evaluation,
        number=None if answers.numbers is None else int(answers.numbers[first]),
        inputs=inputs,
        labels=offer.labels(row) if offer.labels is not None else np.array(answers.labels[first]).reshape(-1),
        ignored=offer.ignored,
        guess=None if many or answers.guesses is None else int(answers.guesses[first]),
        certainty=None if many or answers.certainties is None else float(answers.certainties[first]),
        values=None if answers.values is None else np.array(answers.values[first]).reshape(-1),
        loss=loss,
        right=(int(rights[at].sum()), len(at)) if rights is not None else None,
    )
