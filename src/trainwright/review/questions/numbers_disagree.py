"""TW1016 numbers-disagree: numbers of the same run contradict each other.

Why it matters: One of them is computed wrongly, and decisions are taken by it; or the model is used in another way than it was
trained, as in a generation that begins with the wrong token.
Evidence: The loss, the scores that the script reports as values, and the agreement of outputs and labels of the same rows.
Fix (manual): Compute both numbers by hand for one batch: axes, the order of arguments, what is counted, which rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trainwright.core import Finding, Fix, Number, Place, Proof, Severity, rule
from trainwright.rehearsal.record import LabelKind, PairSource, Record
from trainwright.review.losses import batches_of, is_falling, stands, windows_of
from trainwright.review.numbers import Series, series_of
from trainwright.review.reported_scores import accuracy_apart, batch_means
from trainwright.review.rows import (
    AnsweredRows,
    answers_in_two_ways,
    evaluated_rows,
    held_out_rows,
    latest,
    mixes_rows,
    trained_rows,
)

# The loss is that of guessing (this share of it) beside rows that are right so often, and falls no more.
GUESSING_SHARE, RIGHT, LEAST_ENTROPY = 0.8, 0.8, 0.3
FEWEST_ROWS, FEWEST_HELD_OUT = 100, 50
# A script's own accuracy is off from that of the same rows by so much, and so many standard errors.
OFF, OFF_ERRORS = 0.08, 5.0
# A score of generation at nothing, beside outputs and labels that agree.
NOTHING, AGREES = 0.02, 0.75
# Evaluated rows are so much better than training rows; with dropout or batch statistics at work in training, by more.
ABOVE, ABOVE_NOISY, LEAST_R2 = 0.2, 0.5, 0.5
# Training rows that were last seen this share of the updates earlier are those of another model.
STALE = 0.1
# The standard error of a share of so many rows is below 0.03.
LATEST_ROWS = 300
# Reported values beside losses: as many (three that fit by chance: one in 50,000), and equal but for their rounding.
FEWEST_REPORTED, ROUNDED = 3, 5e-4
# Worse than guessing: below this, where guessing has 0.5; and standard errors of the record's own.
RANKED_BELOW, RANKED_ERRORS, FEWEST_RANKED = 0.45, 3.0, 100

_GIVEN = {
    PairSource.METRIC: "the metric",
    PairSource.COMPARISON: "the comparison",
    PairSource.LOSS: "the loss",
    PairSource.LOADER: "the loader's batch",
}
_EXACT = re.compile(r"exact|\bem\b|bleu|solved|success|sequence|\bhit|ndcg|mrr")
_OF_CLASSES = re.compile(r"\bf1|f1\b|recall|precision")
_CLEARLY_EXACT = re.compile(r"exact")
_RANKING = re.compile(r"\bauc|auroc|concordance|\bc ?index")


@rule("TW1016", Severity.WARNING)
def numbers_disagree(record: Record) -> Iterator[Finding]:
    """Two numbers of the same rows that cannot both be right."""
    last = record.trainings[-1].begins if record.trainings else 0
    series = [one for one in series_of(record, last) if one.is_own and not one.is_ambiguous]
    held, trained = held_out_rows(record), trained_rows(record)
    checks = (
        _find_other_labels(record),
        _find_batch_mean(record, series, held),
        _find_loss_of_guessing(record, trained),
        _find_better_held_out(record, held, trained),
        _find_mixed_passes(record, series, held),
        _find_wrong_accuracy(record, series, trained),
        _find_zero_score(series, [*held, *trained]),
        _find_worse_than_guessing(series, held),
        _find_multiplied_loss(record, last),
    )
    found = next((one for one in checks if one is not None), None)
    if found is not None:
        yield found


_BY_HAND = "compute both by hand for one batch: the axes, the order of the arguments, what is counted, which rows"


def _finding(
    message: str, measured: dict[str, Number], where: Place | None, fact: str, does: str = _BY_HAND
) -> Finding:
    return Finding(message=message, measured=measured, where=where, proof=Proof(fact), fix=Fix(does=does))


def _find_other_labels(record: Record) -> Finding | None:
    """The same answers beside the labels of their own rows, and beside those that a metric was given."""
    for own, other in answers_in_two_ways(record):
        mine, theirs = own.score("accuracy"), other.score("accuracy")
        assert mine is not None and theirs is not None
        given = _GIVEN.get(other.source, "another part of the script")
        return _finding(
            f"{given} gets {theirs.value:.2f} of {len(other.labels):,} answers right; beside the labels of their own rows "
            f"{mine.value:.2f} of {len(own.labels):,} are: its labels are those of other rows, or in another order",
            {"reported": theirs.value, "own_rows": mine.value, "rows": len(own.labels)},
            other.where,
            "the answers of one pass of the model, beside the labels of both",
            "take answers and labels from the same pass over the loader, or do not shuffle it",
        )
    return None


def _find_batch_mean(record: Record, series: list[Series], held: list[AnsweredRows]) -> Finding | None:
    """A score that is no mean over batches, and was averaged over them."""
    for one in batch_means(record, series, held):
        said, count = one.series.values[-1], len(one.rows.labels)
        return _finding(
            f"its own {one.series.name} is {said:.3f}, and {one.of_set:.3f} of the {count:,} rows of that pass together: it is the "
            f"mean of the batches' own scores, in which a batch without rows of a class counts as 0",
            {"reported": said, "of_set": round(one.of_set, 4), "rows": count},
            one.rows.where,
            f"the score of each of {one.batches:,} batches and of all rows, of the last evaluations",
            "gather answers and labels of the whole pass and compute the score once, or use a metric that does",
        )
    return None


def _find_loss_of_guessing(record: Record, trained: list[AnsweredRows]) -> Finding | None:
    for rows in trained:
        accuracy = rows.score("accuracy")
        losses = np.array([one.loss for one in rows.calls if one.loss is not None])
        if (
            rows.output.kind != LabelKind.CLASSES
            or accuracy is None
            or not len(losses)
            or len(rows.labels) <= FEWEST_ROWS
        ):
            continue
        counts = np.array(list(rows.trained.classes.values()) if rows.trained else [1.0], dtype=np.float64)
        entropy = float(-(counts / counts.sum() * np.log(counts / counts.sum())).sum())
        loss = float(losses.mean())
        if (
            accuracy.value > RIGHT
            and entropy > LEAST_ENTROPY
            and loss > GUESSING_SHARE * entropy
            and stands(record, rows)
        ):
            return _finding(
                f"the training loss stands at {loss:.3g}, that of guessing ({entropy:.3g}), while {rows.named} are right at "
                f"{accuracy.value:.2f}",
                {"loss": loss, "loss_of_guessing": entropy, "accuracy": accuracy.value},
                rows.where,
                "loss and accuracy of the same outputs and labels",
            )
    return None


def _find_better_held_out(record: Record, held: list[AnsweredRows], trained: list[AnsweredRows]) -> Finding | None:
    if mixes_rows(record):
        return None
    for rows in held:
        of_training = next((one for one in trained if one.output == rows.output and one.model == rows.model), None)
        if of_training is None or len(rows.labels) < FEWEST_HELD_OUT or len(of_training.labels) < FEWEST_ROWS:
            continue
        of_training = latest(record, of_training, LATEST_ROWS)
        if of_training.update < (1 - STALE) * rows.update:
            continue
        name = "R2" if rows.output.kind == LabelKind.NUMBERS else "accuracy"
        high, low = rows.score(name), of_training.score(name)
        if high is None or low is None or not rows.learned or (name == "R2" and high.value < LEAST_R2):
            continue
        ranked, ranked_less = rows.score("AUC"), of_training.score("AUC")
        if ranked is not None and ranked_less is not None and ranked.value - ranked_less.value < OFF:
            continue  # ranked alike, they are only cut in different places: at a logit's 0, at a probability's 0.5
        is_noisy = any(one.is_noisy for one in of_training.calls)
        if is_falling(record, of_training):
            continue  # each update makes another model: what dropout hides cannot be told from what is learned since
        if high.value - low.value > (ABOVE_NOISY if is_noisy else ABOVE):
            told = "have an R2 of" if name == "R2" else "are right at"
            return _finding(
                f"{of_training.named} {told} {low.value:.2f}, {rows.named} {high.value:.2f}: rows that are trained on should not be "
                "worse",
                {"training": low.value, "evaluation": high.value},
                of_training.where,
                "the same model's answers for both, beside the labels that the loss was given",
            )
    return None


def _find_mixed_passes(record: Record, series: list[Series], held: list[AnsweredRows]) -> Finding | None:
    """A held-out accuracy that is none of those that the rows of its pass have, each time."""
    for one in series:
        if not (one.is_typed and one.is_accuracy and one.is_held_out and max(one.values) <= 1):
            continue
        for rows in held:
            found = accuracy_apart(record, one, rows)
            if found is None:
                continue
            of_set, is_of_all = found
            return _finding(
                f"its own {one.name} is {one.values[-1]:.3f} after update {one.updates[-1]:,}; of the {len(rows.labels):,} rows of "
                f"that pass {of_set:.3f} are right" + (": it is the mean of all passes so far" if is_of_all else ""),
                {"reported": one.values[-1], "agreement": of_set, "rows": len(rows.labels)},
                rows.where,
                "the values of the last evaluations, and all answers and labels of their passes",
                "reset the metric before each pass and give each set a metric of its own: one object for training and "
                "validation counts the rows of both",
            )
    return None


def _find_wrong_accuracy(record: Record, series: list[Series], trained: list[AnsweredRows]) -> Finding | None:
    """A held-out accuracy, as a value, that agrees with no rows of that moment."""
    # Rows without a score, of one class alone, are an evaluation of that moment as well.
    rows = [one for one in (*evaluated_rows(record, scored=False), *trained) if one.output.kind != LabelKind.NUMBERS]
    for one in series:
        update, said = one.updates[-1], one.values[-1]
        here = [r for r in rows if not r.trains and r.update == update]
        if not (one.is_typed and one.is_accuracy and one.is_held_out) or len(here) != 1 or not here[0].learned:
            continue
        said = said / 100 if 1 < max(one.values) <= 100 else said
        known = [s.value for r in rows for s in r.scores if s.name in ("accuracy", "mean recall")]
        off = min(abs(value - said) for value in known)
        own, count = here[0].score("accuracy"), len(here[0].labels)
        if own is not None and 0 <= said <= 1 and off > max(OFF, OFF_ERRORS * math.sqrt(0.25 / count)):
            return _finding(
                f"its own {one.name} is {said:.3f} after update {update:,}; outputs and labels of that pass agree for "
                f"{own.value:.3f} of {count:,} rows",
                {"reported": said, "agreement": own.value, "rows": count},
                here[0].where,
                "the value that the script reports, and the answers and labels of the only evaluation at that moment",
            )
    return None


def _find_zero_score(series: list[Series], rows: list[AnsweredRows]) -> Finding | None:
    """A score of what is generated or found that is nothing, beside answers that are right."""
    right = [
        one for one in rows if one.learned and one.output.kind == LabelKind.CLASSES and len(one.labels) > FEWEST_ROWS
    ]
    agreement = max((s.value for one in right for s in one.scores if s.name == "accuracy"), default=0.0)
    recall = max((s.value for one in right for s in one.scores if s.name == "mean recall"), default=0.0)
    for one in series:
        if one.is_of_training or one.values[-1] > NOTHING or one.values[-1] < 0 or one.direction < 0:
            continue
        exact = _EXACT.search(one.words) if one.is_typed else _CLEARLY_EXACT.search(one.words)
        of_classes = one.is_typed and _OF_CLASSES.search(one.words) and recall > AGREES
        if (exact or of_classes) and agreement > AGREES:
            return _finding(
                f"its own {one.name} ends at {one.values[-1]:.3g}, while outputs and labels agree for {agreement:.2f} of the rows",
                {"reported": one.values[-1], "agreement": agreement},
                right[0].where,
                "the number that the script reports, and the answers and labels of the same model",
            )
    return None


def _find_worse_than_guessing(series: list[Series], held: list[AnsweredRows]) -> Finding | None:
    for rows in held:
        score = rows.score("AUC")
        if score is not None and len(rows.labels) >= FEWEST_RANKED:
            if score.value < RANKED_BELOW and score.errors < -RANKED_ERRORS:
                return _finding(
                    f"{rows.named} are ranked with an AUC of {score.value:.2f}, worse than by guessing (0.50; "
                    f"{-score.errors:.1f} standard errors)",
                    {"AUC": score.value, "guessing": 0.5, "rows": len(rows.labels)},
                    rows.where,
                    "the answers and labels of the last evaluation",
                )
    few = any(len(rows.labels) < FEWEST_RANKED for rows in held)
    for one in series:
        ranks = _RANKING.search(one.words) and one.is_typed and not one.is_of_training
        if ranks and 0 < one.values[-1] < RANKED_BELOW and not few:
            return _finding(
                f"its own {one.name} ends at {one.values[-1]:.3f}, worse than guessing (0.5)",
                {"reported": one.values[-1], "guessing": 0.5},
                None,
                "the value that the script reports",
            )
    return None


def _find_multiplied_loss(record: Record, since: int) -> Finding | None:
    """A loss of training that is reported as the square of the batches per update times what backward was called on.

    Divided by their number, it is the batch's own loss again; a log in front of that division multiplies once too often.
    """
    size, windows = batches_of(record), windows_of(record)
    for one in series_of(record, since):
        if size < 2 or "loss" not in one.words or one.is_held_out or len(one.values) < FEWEST_REPORTED:
            continue
        near = [[*windows.get(update - 1, []), *windows.get(update, [])] for update in one.updates]
        if all(
            any(math.isclose(value, size * size * loss, rel_tol=ROUNDED) for loss in losses)
            for value, losses in zip(one.values, near)
        ):
            found = _finding(
                f"its own {one.name} is {size * size} times what backward was called on, with {size} batches per update: "
                f"it is multiplied by {size} before it was divided by {size}",
                {"reported": one.values[-1], "loss": one.values[-1] / size / size, "batches_per_update": size},
                record.where,
                f"{len(one.values)} reported values, each beside the losses of the same update",
                f"report the loss as it is before the division, and the mean of all {size} batches",
            )
            return replace(found, severity=Severity.NOTE)
    return None
