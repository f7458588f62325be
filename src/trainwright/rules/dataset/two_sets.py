"""The evaluation set compared with the training set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from statistics import fmean, pvariance
from typing import Any

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import unsafe
from trainwright.rules.places import evaluation_place
from trainwright.stages import DatasetFacts, Scaling, SetupFacts, SplitFacts

# A few repeated rows change no score; a twentieth moves it by up to 5 points.
SMALLEST_SHARE = 0.05
FEWEST_ROWS = 5
# So many of the evaluation rows repeat among themselves where they are of few kinds.
FEW_KINDS = 0.5
# Two draws from the same few patterns coincide more often by this many standard errors once in a thousand times.
SURE = 3.0
# Two texts with this many characters, or rows with this many tokens, are not identical by chance, unless they are filled
# in from a few patterns: then rows of the training set repeat as well.
LONG_TEXT, LONG_TOKENS = 40, 12
# Rows of eight columns with three values each that repeat by chance differ from the nearest other row in one value. If
# they differed in four, not even a twentieth of the rows would repeat.
FEWEST_DIFFERING = 4
# Replicates are measured again and have other labels; a blank image counts as one row, however often it occurs.
COPIED_LABELS = 0.95
# A split at random spreads copies over both sets: of the evaluation rows about as many have a copy in training as of the
# training rows. Where far fewer have, rows that repeat by nature were split by what they belong to.
SPLIT_SHARE = 0.5
FEWEST_COPIED = 8
# Draws with equal chances occur as often as a Poisson distribution says: its variance is its mean. Rows that were
# resampled from a set of their own size occur 1.6 times.
FEWEST_DRAWN = 2.0
MOST_ONCE = 0.1
LEAST_SPREAD, MOST_SPREAD = 0.5, 2.0


@rule("TW113", Severity.WARNING)
def train_eval_overlap(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Evaluation rows whose inputs occur in training more often than rows naturally repeat."""
    train, held = dataset.train, dataset.evaluation
    if held is None or not held.hashed or not train.hashed or held.rows is None:
        return
    share, own = dataset.overlap / held.hashed, _repeated_share(train)
    # Where both sets have the same rows, that is another rule's fault (evaluation-on-training-data).
    if (train.rows, train.hashes) == (held.rows, held.hashes) or dataset.overlap < FEWEST_ROWS:
        return
    copied = _are_copies(dataset) and not _are_drawn(train, held) and share >= SPLIT_SHARE * own
    chosen = (_rich(train) and own < SMALLEST_SHARE) or copied
    # Of evaluation rows of few kinds (short phrases) so many would be among as many training rows by chance.
    again = _repeated_share(held)
    natural = max(own, 1 - (1 - again) ** max(1.0, train.hashed / held.hashed)) if again >= FEW_KINDS else own
    # The standard error of the difference between two shares that are equal.
    noise = math.sqrt(natural * (1 - natural) * (1 / held.hashed + 1 / train.hashed))
    if share < SMALLEST_SHARE or (not chosen and share - natural < max(SMALLEST_SHARE, SURE * noise)):
        return
    (first, twin), *_ = dataset.overlap_rows
    # The rows of a stream are numbered differently in the next pass.
    numbered = held.kind == "map" and held.hashed_all
    whole = numbered and dataset.evaluation_place is None and len(dataset.overlap_rows) == dataset.overlap < held.hashed
    yield Finding(
        message=f"{dataset.overlap} of {held.hashed} evaluation rows ({share:.0%}) have the inputs of a training row; "
        f"row {first} is training row {twin}",
        measured={
            "repeated": dataset.overlap,
            "evaluation_rows": held.hashed,
            "share": round(share, 4),
            "repeated_within_training": round(own, 4),
        },
        where=evaluation_place(dataset, setup),
        proof=Proof(
            f"equal inputs, e.g. evaluation rows {_listed([e for e, _ in dataset.overlap_rows])} and training rows "
            f"{_listed([t for _, t in dataset.overlap_rows])}; within training {own:.1%} of rows repeat"
        ),
        # Generated samples are often compared with the training rows themselves.
        severity=Severity.WARNING if _has_targets(train) else Severity.NOTE,
        repair=_leave_out([e for e, _ in dataset.overlap_rows], of=held.hashed) if whole else None,
        fix=unsafe(_advice_on_copies(own)),
    )


def _advice_on_copies(own: float) -> str:
    leave = "remove duplicates before the split, or remove the repeated rows from the evaluation set"
    return f"{leave}; oversample rare classes after the split, in the training set" if own else leave


def _has_targets(split: SplitFacts) -> bool:
    """Whether there is anything to predict: labels, or texts and tokens, which are their own labels."""
    return split.labels is not None or any(c.kind in ("text", "texts") or "int" in c.dtype for c in split.columns)


def _repeated_share(split: SplitFacts) -> float:
    """The share of rows that duplicate another row of the set."""
    counts = Counter(split.row_hashes)
    return sum(n for n in counts.values() if n > 1) / max(1, split.hashed)


def _rich(split: SplitFacts) -> bool:
    """Whether rows contain so much that no two are identical by chance."""
    label = split.labels.column if split.labels else None
    for column in split.columns:
        long = column.median_length or 0
        if column.name == label:
            continue
        if (column.kind == "text" and long >= LONG_TEXT) or (column.name == "input_ids" and long >= LONG_TOKENS):
            return True
    return False


def _are_copies(dataset: DatasetFacts) -> bool:
    """Whether the rows in both sets are too far from all others to be identical by chance, and repeat their labels."""
    copies, held = dataset.copies, dataset.evaluation
    if copies is None or held is None or len(dataset.train.hashes & held.hashes) < FEWEST_COPIED:
        return False
    return copies.nearest_differing >= FEWEST_DIFFERING and copies.same_label_share >= COPIED_LABELS


def _are_drawn(train: SplitFacts, held: SplitFacts) -> bool:
    """Whether both sets are draws from few rows: then nearly all repeat, and how often varies as it does by chance.

    Copies that were made before the split occur equally often, or a few of them do.
    """
    counts = list(Counter((*train.row_hashes, *held.row_hashes)).values())
    mean = fmean(counts)
    once = sum(n == 1 for n in counts) / sum(counts)
    return mean >= FEWEST_DRAWN and once <= MOST_ONCE and LEAST_SPREAD < pvariance(counts) / mean < MOST_SPREAD


def _listed(rows: list[int]) -> str:
    return ", ".join(map(str, rows[:3]))


def _leave_out(rows: list[int], of: int) -> Repair:
    repeated = frozenset(rows)
    left = [r for r in range(of) if r not in repeated]

    def change(call: Call) -> Call:
        def chosen(data: Any) -> Any:
            return call.tensors.choose_rows(data, left)

        held = call.part("eval_dataset")
        if type(held) is dict:
            first = next(iter(held))
            return call.replace(eval_dataset={**held, first: chosen(held[first])})
        return call.replace(eval_dataset=chosen(held))

    return Repair(f"remove {len(rows)} repeated rows from the evaluation set", Seam.TRAINER, change)


# Beyond the noise of the evaluation rows, in standard errors; and enough to matter, in shares of the targets' variance.
SURE_OF_SCALE, ENOUGH = 4.0, 0.1


@rule("TW122", Severity.WARNING, after="TW106")
def differently_scaled_sets(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """One set is scaled, the other is not."""
    seen = dataset.scaling
    if seen is None or not harms(seen):
        return
    yield Finding(
        message=f"{seen.column} is scaled differently in evaluation and training: a feature has mean "
        f"{seen.evaluation_mean:.4g} and deviation {seen.evaluation_deviation:.4g} there, {seen.mean:.4g} and "
        f"{seen.deviation:.4g} in training",
        measured={
            "training_mean": seen.mean,
            "training_deviation": seen.deviation,
            "evaluation_mean": seen.evaluation_mean,
            "evaluation_deviation": seen.evaluation_deviation,
            "far_share": round(seen.far_share, 3),
        },
        where=evaluation_place(dataset, setup)
        if seen.training_is_scaled
        else setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"the squared error of a probe fitted to the training rows, where an uninformed model has 1, is {seen.error:.2g} "
            f"on the evaluation rows and {seen.error_rescaled:.2g} once they have training's mean and deviation "
            f"({seen.rows:,} rows)"
        ),
        fix=unsafe(
            f"scale {seen.column} of both sets with the numbers of the training rows: scaler.fit_transform(train), "
            "scaler.transform(evaluation), or the same division"
        ),
    )


def harms(seen: Scaling | None) -> bool:
    """Whether evaluation rows are predicted clearly better with the scale of the training rows."""
    return seen is not None and seen.gain > ENOUGH and seen.gain_deviations > SURE_OF_SCALE


@rule("TW124", Severity.ERROR, raises=False)
def differently_numbered_sets(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Names whose numbers differ between the two sets."""
    seen = dataset.renumbered
    if seen is None:
        return
    there = seen.table or "the evaluation set"
    kind = "words" if seen.feature is None else "categories"
    where = seen.column if seen.feature in (None, 0) else f"{seen.column}, feature {seen.feature}"
    yield Finding(
        message=f"{seen.differing:,} of {seen.names:,} {kind} have another number in {there} than in training "
        f"(column {where}): {seen.example!r} is {seen.in_training} in training and {seen.in_evaluation} in {there}",
        measured={"names_in_both_sets": seen.names, "numbered_otherwise": seen.differing},
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=Proof(
            f"each name has one number in all rows of a set; the names are those of {seen.sources[0]} and {seen.sources[1]}"
        ),
        fix=Fix(
            does="make one numbering from the training rows (an encoder's fit, a dictionary, a vocabulary) and use it for both sets"
        ),
    )
