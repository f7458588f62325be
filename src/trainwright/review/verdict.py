"""The verdict of a run: whether it learns, and by which numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trainwright.core import Finding, Severity, Shown, Verdict
from trainwright.core.verdict import ON_PURPOSE
from trainwright.rehearsal.record import Record, Training
from trainwright.review.drawn import OneBatch, one_batch
from trainwright.review.numbers import Series, own_score, series_of_training
from trainwright.review.parts import FEWEST_TRAINED, parts_behind, rows_at_constant, still_trainings, tell_rare
from trainwright.review.rows import (
    AnsweredRows,
    evaluated_rows,
    had_its_chance,
    held_out_rows,
    tell_updates,
    trained_rows,
)
from trainwright.review.scores import FEWEST_ROWS
from trainwright.review.sheet_answers import first_scores
from trainwright.review.sweeps import whole_trials, without_cut_trials

# A script's own number is clearly above guessing from here on: an accuracy this much above the largest class, a ranking, an R2.
ABOVE_LARGEST, OWN_AUC, OWN_R2 = 0.15, 0.65, 0.15
# Standard errors by which a log loss is above the constant's.
OVERCONFIDENT = 3.0
# Standard errors from which a gain of one of several measures is none of chance.
CLEAR_ERRORS = 6.0
KEPT_ROOM = 0.67  # with less than this share of the gain that was there at first, rows are answered far worse
# Trials of which one stands for all.
MOST_TRIALS = 10
_RANKING = re.compile(r"\bauc|auroc|concordance")
_R2 = re.compile(r"\br2\b|r squared")


def verdict_of(record: Record, findings: Sequence[Finding]) -> Verdict:
    """The verdict of a record.

    Args:
        findings: what the review found.
    """
    broken = _broken(record, findings)
    if broken is not None:
        return broken
    if record.updates and not record.losses and not record.looked_updates and record.ended.is_cut:
        why = record.ended.hindrance or "its process had to be ended, and could not write what it saw"
        return Verdict(shown=Shown.NOT_SHOWN, why=f"after {record.updates:,} updates {why}")
    if not record.updates and not record.losses:
        return Verdict(shown=Shown.CANNOT_BE_JUDGED, why="no training was seen in the run")
    one = one_batch(record)
    if one is not None and one.is_chosen:
        return Verdict(shown=Shown.NOT_SHOWN, why=_by_heart(record, one))
    return _with_trainings(record, _judged_run(record))


def chosen_trial(record: Record) -> tuple[Training, Verdict] | None:
    """The last whole trial that learned, or the last whole one: it stands for all, on the sheet as in the verdict."""
    trials = whole_trials(record)[-MOST_TRIALS:]
    last = without_cut_trials(record) if trials else record
    judged = [(one, _judged(last, one)) for one in reversed(trials)]
    return next((one for one in judged if one[1].shown == Shown.LEARNS), judged[0] if judged else None)


def _judged_run(record: Record) -> Verdict:
    """The verdict of all trainings, or, where they are trials, of the one that stands for them."""
    chosen = chosen_trial(record)
    if chosen is None:
        return _judged(record, None)
    trial, verdict = chosen
    return replace(verdict, why=f"training {trial.number} of {len(record.trainings)}, {verdict.why}")


def _with_trainings(record: Record, verdict: Verdict) -> Verdict:
    """The verdict of the run, of which every training is a part."""
    if verdict.shown != Shown.LEARNS or len(record.trainings) < 2:
        return verdict
    flat = [(one, found.why) for one, found in verdicts(record) if found.shown == Shown.DOES_NOT_LEARN]
    # Trainings of one line are parts of one: folds, clients, trials.
    at_line = Counter(one.where for one in record.trainings)
    flat = [(one, why) for one, why in flat if 2 * sum(o.where == one.where for o, _ in flat) >= at_line[one.where]]
    for training, why in flat:
        at = f" ({training.where})" if training.where is not None else ""
        part = f"training {training.number} of {len(record.trainings)}{at}"
        return Verdict(shown=Shown.LEARNS_IN_PART, why=f"{part} does not learn: {why}; the run {verdict.why}")
    return verdict


def _by_heart(record: Record, one: OneBatch) -> str:
    """What is known of a batch that is learned by heart, as it was answered last."""
    known = next(iter([*evaluated_rows(record, scored=False), *trained_rows(record, scored=False)]), None)
    known = None if known is None or known.is_held_out else known
    last = None if known is None or known.guesses is None else known.calls[-1]
    told = f"{known.told}" if known is not None and known.scores else "no answers for it were seen"
    if last is not None and last.guesses is not None:
        told = f"{int((last.guesses == last.labels).sum())} of {len(last.labels)} were right in the end"
    return (
        f"{tell_updates(record)} on one batch of {one.rows} rows, {ON_PURPOSE}: {told}; other rows were not trained on"
    )


def verdicts(record: Record, most: int | None = None) -> list[tuple[Training, Verdict]]:
    """The verdict of each training of a record, or of the first ones, by itself."""
    return [(training, _judged(record, training)) for training in record.trainings[:most]]


def _broken(record: Record, findings: Sequence[Finding]) -> Verdict | None:
    first = next((one for one in (*record.earlier, record.ended) if one.failure is not None), None)
    if first is not None:
        updates = record.updates if first is record.ended else first.update
        return Verdict(shown=Shown.BROKEN, why=f"{_when(updates)} it stops with {first.failure}")
    when = _when(record.updates)
    if record.ended.status and not record.ended.is_cut:
        return Verdict(shown=Shown.BROKEN, why=f"{when} its process ends with status {record.ended.status}")
    for one in findings:
        if one.name == "run-diverged" and one.severity == Severity.ERROR:
            return Verdict(shown=Shown.BROKEN, why=one.message)
    return None


def _when(updates: int) -> str:
    return f"after {updates:,} updates" if updates else "before its first update"


def _judged(record: Record, training: Training | None) -> Verdict:
    held, after = held_out_rows(record, training), f"after {tell_updates(record, training)}"
    still = still_trainings(record)
    if training in still if training is not None else record.trainings and len(still) == len(record.trainings):
        return Verdict(shown=Shown.DOES_NOT_LEARN, why=f"{after} its weights are what they were before it")
    learned = next((one for one in held if one.learned and not _fallen_from(record, one)), None)
    if learned is not None and _is_by_chance(record, training, learned):
        return Verdict(shown=Shown.NOT_SHOWN, why=f"{after} {learned.told}, and its training rows show no gain")
    if learned is not None:
        part = next(iter(parts_behind(record, training)), None)
        if part is not None:
            return Verdict(shown=Shown.LEARNS_IN_PART, why=f"{after} {part.told}{_own(record, training)}")
        return Verdict(shown=Shown.LEARNS, why=f"{after} {learned.told}{_own(record, training)}{_sure(learned)}")
    flat = rows_at_constant(record, training)
    if flat is not None and flat.is_held_out:
        return Verdict(shown=Shown.DOES_NOT_LEARN, why=f"{after} {flat.told}{_own(record, training)}")
    own = _own_gain(record, training)
    if own is not None:
        told = f"its own {own.name} is {own.values[-1]:.4g}"
        told += f", {own.values[0]:.4g} at first" if len(own.values) > 1 else ""
        only = _only_training(record, own) if training is None else None
        if only is None:
            return Verdict(shown=Shown.LEARNS, why=f"{after} {told}")
        of = f"training {only.number} of {len(record.trainings)}, after {tell_updates(record, only)}"
        return Verdict(shown=Shown.LEARNS, why=f"{of} {told}; no other training has such a number")
    if flat is not None:
        return Verdict(
            shown=Shown.DOES_NOT_LEARN, why=f"{after} {flat.told}; no held-out labels were seen beside answers"
        )
    return _not_shown(record, training, held, after)


def _fallen_from(record: Record, rows: AnsweredRows) -> str:
    """From what the score of these rows has fallen, in words: what a model loses in a run, it has not learned in it."""
    first = next((one for one in first_scores(record, rows) if one.name == rows.best.name), None)
    is_fallen = first is not None and first.shows and rows.best.room < KEPT_ROOM * first.room
    return f"; it was {first.value:.2f} at first" if first is not None and is_fallen else ""


def _sure(rows: AnsweredRows) -> str:
    """That answers are right more often than a constant, and yet so sure of the wrong ones that their log loss is worse."""
    loss = rows.score("log loss")
    if loss is None or loss.errors > -OVERCONFIDENT or loss.value <= loss.constant:
        return ""
    return f"; it is sure of its wrong answers: their log loss is {loss.value:.3g}, above the constant's {loss.constant:.3g}"


def _is_by_chance(record: Record, training: Training | None, held: AnsweredRows) -> bool:
    """Whether a small gain on held-out rows, of several measures, stands beside none on as many rows of training."""
    same = [one for one in trained_rows(record, training) if one.output == held.output]
    is_small = max(one.errors for one in held.scores) < CLEAR_ERRORS
    return is_small and bool(same) and all(one.at_constant and len(one.labels) >= FEWEST_TRAINED for one in same)


def _not_shown(record: Record, training: Training | None, held: list[AnsweredRows], after: str) -> Verdict:
    cut = "" if had_its_chance(record, training) else "; it was ended before its plan was run"
    if held:
        told = tell_rare(held[0]) or f"{held[0].told}{_fallen_from(record, held[0])}"
        return Verdict(shown=Shown.NOT_SHOWN, why=f"{after} {told}{cut}{_own(record, training)}")
    trained = [*evaluated_rows(record, training), *trained_rows(record, training)]
    if trained:
        best = next((one for one in trained if one.learned), trained[0])
        only = "no held-out labels were seen beside answers"
        return Verdict(shown=Shown.NOT_SHOWN, why=f"{after} {best.told}; {only}{cut}{_own(record, training)}")
    if few := _few(record, training):
        why = f"{after} too few labels were seen to tell: {few}{cut}{_own(record, training)}"
        return Verdict(shown=Shown.NOT_SHOWN, why=why)
    why = "no answers were seen beside labels of rows, for which a constant answer could be scored"
    return Verdict(shown=Shown.CANNOT_BE_JUDGED, why=f"{after} {why}{_own(record, training)}")


def _few(record: Record, training: Training | None) -> str:
    """The labels that were seen, counted, if they are few; many that are none of rows are those of adversarial losses."""
    known = [*evaluated_rows(record, training, scored=False), *trained_rows(record, training, scored=False)]
    most = max(known, key=lambda one: len(one.labels), default=None)
    if most is not None and len(most.labels) < FEWEST_ROWS:
        return f"those of {most.named}"
    seen_labels = sum(len(one.labels) for one in record.answers)
    return f"{seen_labels:,}" if 0 < seen_labels < FEWEST_TRAINED else ""


def _own(record: Record, training: Training | None) -> str:
    series = own_score(record, training)
    return f"; {series.told}" if series is not None else ""


def _only_training(record: Record, series: Series) -> Training | None:
    """The one training with all values of a number, of which other models know nothing; None: it is of the whole run."""
    for one in record.trainings:
        others = {model for other in record.trainings if other is not one for model in other.models}
        if others - {*one.models} and series in series_of_training(record, one):
            return one
    return None


def _own_gain(record: Record, training: Training | None) -> Series | None:
    """The script's own number of held-out rows, as a value, where it is clearly above guessing."""
    classes = [labels.classes for labels in record.trained_labels.values() if labels.classes]
    largest = max((max(of.values()) / max(1, sum(of.values())) for of in classes), default=0.5)
    for one in series_of_training(record, training):
        if one.is_typed and one.is_held_out and one.is_own and _is_above(one, largest):
            return one
    return None


def _is_above(one: Series, largest: float) -> bool:
    value = one.values[-1]
    if not math.isfinite(value) or one.direction <= 0:
        return False
    if one.is_accuracy:
        value = value / 100 if 1 < value <= 100 else value
        return largest + ABOVE_LARGEST < value <= 1
    return (OWN_AUC < value <= 1 and bool(_RANKING.search(one.words))) or (
        OWN_R2 < value <= 1 and bool(_R2.search(one.words))
    )
