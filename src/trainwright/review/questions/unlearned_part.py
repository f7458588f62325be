"""TW1014 unlearned-part: one class, one output or one evaluated set is not learned, though the others are.

Why it matters: The mean score hides it: a class that is never answered, two classes that are taken for each other, a second
output whose loss or labels are wrong.
Evidence: The answers of the last evaluation and of the last updates, class by class, output by output and set by set.
Fix (manual): Look at the labels, the weights and the rows of this part: two numbers exchanged in one file, class weights in
another order, a scale that its output cannot reach, a set that is prepared in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, NamedRows, Proof, Severity, rule
from trainwright.rehearsal.record import LabelKind, Record
from trainwright.review.parts import Part, parts_behind
from trainwright.review.rows import AnsweredRows, evaluated_rows, had_its_chance, mixes_rows, trained_rows, updates_of
from trainwright.review.scores import area, errors_of, standard

# More are a vocabulary: rare tokens are never answered in sound language models.
MOST_CLASSES, MOST_OUTPUTS = 20, 16
# Rows of a class that would be right if it were answered like the others; its share in training, of an equal share.
EXPECTED_RIGHT, TRAINED_SHARE, RARE_SHARE = 25, 0.3, 0.05
# The accuracy that makes a class stand out: of the other classes' evaluated rows, or of all training rows.
WELL_TRAINED, FEWEST_OF_CLASS = 0.8, 40
# Taken for another class: recall below this, where all have more, and so many of its errors go to one class.
CONFUSED, OTHERS, TO_ONE, FEWEST_CONFUSED = 0.6, 0.8, 0.8, 60
# An output that is learned, one that is not; at least half of them are.
LEARNED_R2, UNLEARNED_R2, LEARNED_AREA = 0.3, 0.02, 0.75
FEWEST_RANKED = 20
# A model answers the commonest classes first; after fewer updates the others say nothing.
FEWEST_UPDATES = 100


@rule("TW1014", Severity.WARNING)
def unlearned_part(record: Record) -> Iterator[Finding]:
    """A part that stands out among those that are learned."""
    for part in parts_behind(record)[:1]:
        best = part.rows.best
        yield Finding(
            message=f"{part.told}: {'this set' if part.rows.output == part.ahead.output else 'this output'} is not learned",
            measured={"score": best.value, "constant": best.constant, "rows": len(part.rows.labels)},
            where=part.rows.where,
            proof=Proof(f"the answers for {part.rows.named} and for {part.ahead.named}, and their labels"),
            fix=Fix(does=_remedy(part)),
        )
        return
    if not had_its_chance(record) or mixes_rows(record) or updates_of(record) < FEWEST_UPDATES:
        return
    for rows in (*evaluated_rows(record), *trained_rows(record)):
        if rows.learned and (found := _check(rows)) is not None:
            message, measured = found
            yield Finding(
                message=message,
                measured={**measured, "rows": len(rows.labels)},
                where=rows.where,
                proof=Proof(f"the answers for {rows.named} after update {rows.update:,}, and their labels"),
                fix=Fix(does="look at the labels, the weights and the rows of this part: from the file to the loss"),
                rows=NamedRows(why="of that class", classes=(int(measured["class"]),)) if "class" in measured else None,
            )
            return


def _remedy(part: Part) -> str:
    if part.rows.output != part.ahead.output:
        return "look at the labels that this output is trained with: of which rows, in which scale, with which weight"
    order = "the answers are in the right order, in another scale or at another level: " if part.is_shifted else ""
    return f"{order}look at how the rows of this set are prepared, beside those of the other: scale, columns, tokens, labels"


def _check(rows: AnsweredRows) -> tuple[str, dict[str, float | int | str]] | None:
    if rows.output.kind == LabelKind.CLASSES:
        return _class(rows) if rows.output.width <= MOST_CLASSES else None
    if rows.values is None or not 2 <= rows.values.shape[1] <= MOST_OUTPUTS:
        return None
    return _number(rows) if rows.output.kind == LabelKind.NUMBERS else _yes_or_no(rows)


def _class(rows: AnsweredRows) -> tuple[str, dict[str, float | int | str]] | None:
    assert rows.guesses is not None
    accuracy = float((rows.guesses == rows.labels).mean())
    classes, counts = np.unique(rows.labels, return_counts=True)
    answered = Counter(rows.guesses.tolist())
    drawn = rows.trained.classes if rows.trained is not None else Counter(rows.labels.tolist())
    total, fair = sum(drawn.values()), 1 / len(classes)
    for one, count in zip(classes.tolist(), counts.tolist()):
        share = drawn.get(one, 0) / max(1, total)
        here = rows.guesses[rows.labels == one]
        recall = float((here == one).mean())
        common = count * accuracy >= EXPECTED_RIGHT and share > TRAINED_SHARE * fair
        rare = count >= FEWEST_OF_CLASS and share > RARE_SHARE * fair and accuracy > WELL_TRAINED and rows.trains
        among = accuracy if rows.trains else accuracy * len(rows.labels) / max(1, len(rows.labels) - count)
        if not answered[one] and ((common and among > WELL_TRAINED) or rare):
            return (
                (
                    f"class {one} is never answered: {count:,} of {rows.named} have it, and {share:.0%} of the labels trained on; "
                    f"all together are right at {accuracy:.2f}"
                ),
                {"class": one, "with_it": count, "answered": 0, "accuracy": accuracy},
            )
        wrong = Counter(here[here != one].tolist()).most_common(1)
        others = _lowest_other(rows, classes.tolist(), {one, *(other for other, _ in wrong)})
        if (
            count >= FEWEST_CONFUSED
            and recall < CONFUSED
            and accuracy > OTHERS
            and others > OTHERS
            and share > 0.5 * fair
        ):
            if wrong[0][1] > TO_ONE * (here != one).sum():
                return (
                    (
                        f"class {one} is right for {recall:.2f} of {count:,} rows and otherwise taken for class {wrong[0][0]}; "
                        f"each other class is right for {others:.2f} or more"
                    ),
                    {"class": one, "taken_for": wrong[0][0], "recall": recall, "others": others},
                )
    return None


def _lowest_other(rows: AnsweredRows, classes: list[int], left_out: set[int]) -> float:
    assert rows.guesses is not None
    found = [float((rows.guesses[rows.labels == c] == c).mean()) for c in classes if c not in left_out]
    return min(found, default=1.0)


def _number(rows: AnsweredRows) -> tuple[str, dict[str, float | int | str]] | None:
    assert rows.values is not None
    labels = rows.labels.reshape(len(rows.labels), -1).astype(np.float64)
    mean, deviation, varies = standard(labels, rows.trained)
    constant, given = ((labels - mean) / deviation) ** 2, ((labels - rows.values) / deviation) ** 2
    r2 = 1 - given.sum(0) / np.maximum(1e-12, constant.sum(0))
    learned = [one for one in np.flatnonzero(varies) if r2[one] > LEARNED_R2]
    for one in np.flatnonzero(varies):
        values = rows.values[:, one]
        related = values.std() > 0 and abs(float(np.corrcoef(values, labels[:, one])[0, 1])) > LEARNED_R2
        if r2[one] < UNLEARNED_R2 and errors_of(constant[:, one] - given[:, one]) < 2 and not related:
            if 2 * len(learned) >= varies.sum():
                return (
                    (
                        f"output {one + 1} of {len(r2)} is not learned: {rows.named} have an R2 of {r2[one]:.2f} there, of up to "
                        f"{max(r2[o] for o in learned):.2f} in others"
                    ),
                    {"output": int(one) + 1, "R2": float(r2[one]), "best": float(max(r2[o] for o in learned))},
                )
    return None


def _yes_or_no(rows: AnsweredRows) -> tuple[str, dict[str, float | int | str]] | None:
    assert rows.values is not None
    yes = rows.labels.reshape(len(rows.labels), -1) > 0.5
    areas = {one: found for one in range(yes.shape[1]) if (found := area(yes[:, one], rows.values[:, one]))}
    learned = [value for value, _ in areas.values() if value > LEARNED_AREA]
    for one, (value, error) in areas.items():
        enough = min(int(yes[:, one].sum()), int((~yes[:, one]).sum())) >= FEWEST_RANKED
        if enough and value < 0.5 + 2 * error and 2 * len(learned) >= len(areas):
            return (
                (
                    f"answer {one + 1} of {yes.shape[1]} is not learned: {rows.named} are ranked with an AUC of {value:.2f} there, of "
                    f"up to {max(learned):.2f} in others"
                ),
                {"answer": one + 1, "AUC": value, "best": max(learned)},
            )
    return None
