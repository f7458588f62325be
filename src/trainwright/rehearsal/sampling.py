"""Chooses the few rows of each set that are shown one by one, while the script runs, and tells which of their places hold padding;
no random numbers are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sample import NOT_FINITE, OF_CLASS, TORN, WORST
from trainwright.rehearsal.record import Answers, Floats, Integers, LabelKind, Output, PairSource, Sampled
from trainwright.stages import IGNORED_LABEL

# How many rows are kept for each reason.
CHOSEN = {"at random": 2, "longest": 1, "shortest": 1, WORST: 3, TORN: 2}
# Classes of which a row is kept, so that there is one of the rarest.
MOST_CLASSES = 20
# Sets and outputs whose rows are kept, and values of one row.
MOST_SETS, MOST_VALUES = 8, 1_000_000
# Training rows are those of the last calls: after this growth of the updates they are chosen anew.
ANEW = 1.5
# So many rows are seen before those that were chosen before are forgotten.
FEWEST_ROWS = 32
# Whole numbers in a row up to which they are columns of a table, not tokens.
FEW = 4
# The output of a row of which no answer is known.
UNKNOWN = Output(LabelKind.NUMBERS, 0)
# An odd number without a pattern: the golden ratio's fraction of 2**64.
GOLDEN = 0x9E3779B97F4A7C15

Arrays = list[tuple[str, NDArray[Any]]]
_Places = NDArray[np.bool_]
_Beside = Iterable[tuple[str, NDArray[Any]]]


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
    ignored: int = IGNORED_LABEL
    torn: NDArray[np.bool_] | None = None
    """Which of the answered rows are equal to rows with another label; None: not known."""


@dataclass
class _Set:
    """The rows that are chosen of one set."""

    begins: int
    evaluation: int | None
    seen: int = 0
    classes: Counter[int] = field(default_factory=Counter)
    best: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    kept: dict[int, Sampled] = field(default_factory=dict)
    contents: dict[int, int] = field(default_factory=dict)
    """Of each row that is kept, a number that equal rows with equal labels share."""
    before: _Set | None = None

    @property
    def are_alike(self) -> bool:
        """Whether all of its rows are equally long."""
        ends = [self.best[reason][0][0] for reason in ("longest", "shortest") if self.best.get(reason)]
        return sum(ends) == 0


class Sampler:
    """Keeps a few rows of each set and output."""

    def __init__(self) -> None:
        self._sets: dict[Any, _Set] = {}
        self.broken: tuple[int | None, Arrays] | None = None
        """The number and the inputs of the first row that holds a number that is not finite."""

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
        found = [] if self.broken is None else [(_broken(self.broken[0]), self.broken[1])]
        for one in self._sets.values():
            shown = one.before if one.before is not None and one.seen < FEWEST_ROWS else one
            rare = min(shown.classes, key=lambda label: (shown.classes[label], label), default=None)
            reasons: dict[int, list[str]] = {}
            for reason, best in shown.best.items():
                if reason in ("longest", "shortest") and shown.are_alike:
                    continue
                is_rarest = reason == f"{OF_CLASS} {rare}" and len(shown.classes) > 1
                for _, number in best:
                    reasons.setdefault(number, []).extend(["rarest label", reason] if is_rarest else [reason])
            first = {shown.contents[number]: number for number in reversed(reasons)}  # of equal rows, one is shown
            for number in [one for one in reasons if first[shown.contents[one]] != one]:
                reasons[first[shown.contents[number]]] += reasons.pop(number)
            for number, why in reasons.items():
                row = shown.kept[number]
                found.append((replace(row, why=tuple(dict.fromkeys(why))), row.inputs))
        return found


def lengths_of(inputs: Arrays) -> Integers | None:
    """The lengths of rows of tokens: where their mask is 1, or up to the zeros at their end; None: they are no tokens."""
    whole = [(n, a) for n, a in inputs if a.ndim == 2 and a.shape[1] > FEW and a.dtype.kind in "iub" and a.size]
    if not whole:
        return None
    first = whole[0][1]
    mask = read_places(first, whole)
    read = first != 0 if mask is None else mask
    lengths: Integers = np.where(read.any(1), read.shape[1] - np.argmax(read[:, ::-1], 1), 0)
    return lengths


def _choose(known: _Set, offer: Offer) -> None:
    rows, first, place, counts = np.unique(offer.rows, return_index=True, return_inverse=True, return_counts=True)
    losses = _losses(offer.answers)
    by_row = None if losses is None else np.bincount(place, losses, len(rows)) / counts
    many = offer.labels is not None or len(rows) < len(offer.rows)
    for reason, scores in _reasons(known, offer, rows, first, by_row, many).items():
        most, best = CHOSEN.get(reason, 1), known.best.setdefault(reason, [])
        for i in np.argsort(-scores, kind="stable")[: 4 * most].tolist():
            score = float(scores[i])
            if not np.isfinite(score) or (len(best) >= most and score <= best[-1][0]):
                break
            if any(score == other for other, _ in best):  # the same row, or an equal one
                continue
            number = known.seen + i
            if number not in known.kept:
                made = _sampled(offer, int(rows[i]), np.flatnonzero(place == i), by_row, i, many)
                if made is None:
                    continue
                known.kept[number], known.contents[number] = made, _content(made)
            same = [at for at, (_, other) in enumerate(best) if known.contents[other] == known.contents[number]]
            if same and best[same[0]][0] >= score:
                continue
            for at in same:  # drawn again
                del best[at]
            best.append((score, number))
            best.sort(key=lambda one: -one[0])
            del best[most:]
    known.seen += len(rows)
    wanted = {number for best in known.best.values() for _, number in best}
    known.kept = {number: one for number, one in known.kept.items() if number in wanted}
    known.contents = {number: content for number, content in known.contents.items() if number in wanted}


def _content(row: Sampled) -> int:
    parts = [array.tobytes() if array.dtype.kind != "O" else repr(array.tolist()).encode() for _, array in row.inputs]
    return hash((*parts, row.labels.tobytes()))


def _reasons(
    known: _Set, offer: Offer, rows: Integers, first: Integers, losses: Floats | None, many: bool
) -> dict[str, Floats]:
    """Reasons to show a row, each with how well the rows fit; not finite: not at all."""
    answers = offer.answers
    known_by = answers.numbers if answers.numbers is not None else answers.keys
    keys = known_by[first] + 1 if known_by is not None else known.seen + 1 + np.arange(len(rows))
    mixed = keys.astype(np.int64).view(np.uint64) * np.uint64(GOLDEN)
    found: dict[str, Floats] = {
        "at random": ((mixed ^ (mixed >> np.uint64(29))) & np.uint64(0xFFFFFFFF)).astype(np.float64)
    }
    if offer.lengths is not None:
        lengths = offer.lengths[rows].astype(np.float64)
        found |= {"longest": lengths, "shortest": -lengths}
    if losses is not None:
        found[WORST] = losses
    if offer.torn is not None and answers.keys is not None and not many and offer.torn.any():
        # The same row with each of its labels, if both are met.
        order = (answers.keys[first] & 0xFFFFFFFF) + answers.labels[first].reshape(len(first), -1)[:, 0] / 1000
        found[TORN] = np.where(offer.torn[first], order, -np.inf)
    labels = answers.labels[first].reshape(len(first), -1)
    if answers.output.kind == LabelKind.BINARY and 1 < answers.output.width <= MOST_CLASSES and not many:
        for number, on in enumerate((labels > 0.5).T):
            if on.any() and number not in known.classes:
                found[f"{OF_CLASS} {number}"] = np.where(on, 0.0, -np.inf)
            known.classes[number] += int(on.sum())
    elif answers.output.kind != LabelKind.NUMBERS and answers.output.width <= MOST_CLASSES and not many:
        labels = labels[:, 0]
        for label, count in zip(*(one.tolist() for one in np.unique(labels, return_counts=True)), strict=True):
            if int(label) not in known.classes:
                found[f"{OF_CLASS} {int(label)}"] = np.where(labels == label, 0.0, -np.inf)
            known.classes[int(label)] += count
    return found


def _losses(answers: Answers) -> Floats | None:
    """A loss for each answer, by what its kind means."""
    if answers.output.kind == LabelKind.CLASSES or answers.values is None:
        return answers.log_losses
    labels = answers.labels.reshape(len(answers.labels), -1).astype(np.float64)
    values = answers.values.reshape(labels.shape).astype(np.float64)
    if answers.output.kind == LabelKind.BINARY:
        sure = np.clip(np.where(labels > 0.5, values, 1 - values), 1e-7, 1.0)
        return np.asarray(-np.log(sure).mean(1))
    return np.asarray(((labels - values) ** 2).mean(1))


def _sampled(offer: Offer, row: int, at: Integers, losses: Floats | None, place: int, many: bool) -> Sampled | None:
    answers, first = offer.answers, int(at[0])
    inputs = offer.take(row)
    if not inputs or sum(array.size for _, array in inputs) > MOST_VALUES:
        return None
    right = None if answers.guesses is None else int((answers.guesses[at] == answers.labels[at]).sum())
    return Sampled(
        output=answers.output,
        update=answers.update,
        trains=answers.trains,
        data=answers.data,
        model=answers.model,
        source=answers.source,
        number=None if answers.numbers is None else int(answers.numbers[first]),
        inputs=inputs,
        labels=offer.labels(row) if offer.labels is not None else np.array(answers.labels[first]).reshape(-1),
        ignored=offer.ignored,
        guess=None if many or answers.guesses is None else int(answers.guesses[first]),
        certainty=None if many or answers.certainties is None else float(answers.certainties[first]),
        values=None if answers.values is None else np.array(answers.values[first]).reshape(-1),
        loss=None if losses is None else float(losses[place]),
        right=None if right is None else (right, len(at)),
    )


def _broken(number: int | None) -> Sampled:
    """A row of training that no answer is known of."""
    return Sampled(
        output=UNKNOWN,
        update=0,
        trains=True,
        data=0,
        model=0,
        source=PairSource.LOADER,
        number=number,
        inputs=[],
        labels=np.zeros(0),
        ignored=IGNORED_LABEL,
        guess=None,
        certainty=None,
        values=None,
        loss=None,
        right=None,
        why=(NOT_FINITE,),
    )


def read_places(ids: NDArray[Any], beside: _Beside, padding: int | None = None) -> _Places | None:
    """Which tokens of each row are read, by a mask among the inputs; None: none of them is one.

    Zeros and ones beside tokens may also be the types of tokens, of which sentence each is. So what a mask leaves out must be one
    token, at the ends of rows; one that is called an attention mask is taken at its word, unless what it reads is one token.

    Args:
        ids: (rows, length).
        beside: inputs by their names, those that are `ids` and of other shapes included.
        padding: the tokenizer's token for it, if known.
    """
    same = [
        (str(name).lower(), values)
        for name, values in beside
        if values is not ids
        and values.shape == ids.shape
        and values.dtype.kind in "iufb"
        and bool(((values == 0) | (values == 1)).all())
    ]
    for name, values in sorted(same, key=lambda one: ("mask" not in one[0], "attention_mask" not in one[0])):
        read: _Places = values != 0
        if name.endswith("attention_mask") and "global" not in name and read.any():
            return ~read if len(np.unique(ids[read])) == 1 < len(np.unique(ids[~read])) else read
        is_named = any(part in name for part in ("attention", "attn", "pad"))
        if _leaves_padding_out(ids, read, padding, is_named):
            return read
        is_of_padding = "pad" in name or values.dtype.kind == "b"  # true where padding is, as in torch's attention
        if is_of_padding and not read.all() and read.any() and _leaves_padding_out(ids, ~read, padding, is_named):
            return ~read
    return None


def _leaves_padding_out(ids: NDArray[Any], read: _Places, padding: int | None, is_named: bool) -> bool:
    """Whether each row is read from its first to its last such place, and all that is left out is the same token.

    One place is always the same token: it has to be the tokenizer's padding, or the mask named as one.
    """
    left_out = ids[~read]
    if not read.any(1).all() or len(np.unique(left_out)) > 1:
        return False
    if len(left_out) == 1 and left_out[0] != padding and not is_named:
        return False
    first, last = np.argmax(read, 1), read.shape[1] - np.argmax(read[:, ::-1], 1)
    return bool((last - first == read.sum(1)).all())
