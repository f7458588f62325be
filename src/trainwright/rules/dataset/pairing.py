"""Labels that do not belong to their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core import Call, Finding, Fix, Place, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.dataset.texts import HALF
from trainwright.rules.places import evaluation_place
from trainwright.stages import (
    AlignedSource,
    Alignment,
    Contradictions,
    DatasetFacts,
    LabelFacts,
    Mispaired,
    SetupFacts,
    Transfer,
)

# In standard deviations of the permutations' scores. The best of four probes on shuffled labels stays under 3 in
# 99 of 100 sets; real labels of 300 tweets in three classes reach 6, of 1,200 they reach 27.
NOTHING_LEARNT = 3.5
LEARNT = 6.0
# The control on 300 tweets reaches 12, on 600 rows of a table 86, on independent random numbers or tokens 3.
CONTROL_LEARNT = 6.0
# With fewer rows and no other set to compare with, noise could hide a subtle relation.
FEWEST_ROWS_ALONE = 400
# A table from which evaluation rows were split off has somewhat more rows, which gives its probe more power.
MOST_MORE_ROWS = 1.5
# Sentences that differ in one word or its position may be right or wrong because of agreement or order, which no single
# word shows. For two classes of such rows, the probe must be known to learn from pairs of words. The median tweet (of
# 400 to 1,200) has a similarity of 0.3 to its nearest neighbor; made-up sentences of few words have 0.6 or more.
ALIKE = 0.45
FEWEST_RENUMBERED = 2


@rule("TW105", Severity.ERROR, raises=False)
def misaligned_labels(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that a probe learns no better than a permutation of them."""
    if (other := _numbered_otherwise(dataset)) is not None:
        yield _of_names(*other, setup)
        return
    if dataset.transfer is not None:
        yield _of_numbers(dataset.transfer, dataset, setup)
        return
    if (seen := dataset.mispaired) is not None:
        yield _in_step(seen, setup)
        return
    if contradict(dataset.contradictions):  # the more specific finding
        return
    if dataset.texts is not None and (dataset.texts.unknown_share or 0) > HALF:  # the words that tell may be among them
        return
    train, evaluation = dataset.alignment, dataset.evaluation_alignment
    if train and evaluation and (train.inputs == "text") != (evaluation.inputs == "text"):
        evaluation = None  # one set is not tokenized yet: the same rows are two tasks for the probe
    if train is not None and train.score < NOTHING_LEARNT:
        if evaluation is not None and evaluation.score > LEARNT and evaluation.rows <= train.rows:
            proof = _proof_of_other("evaluation", evaluation)
        elif (source := dataset.aligned_source) is not None and _tells(source, train):
            proof = _proof_of_source(source)
        elif _tells_alone(train):
            proof = _proof_of_control(train)
        else:
            return
        where = setup.place(Role.TRAIN_DATASET, Role.TRAIN_DATASET_MADE) or dataset.label_place
        yield _not_learned("training", train, proof, where or setup.place(Role.TRAINER))
    elif train is not None and evaluation is not None and train.score > LEARNT and evaluation.score < NOTHING_LEARNT:
        if evaluation.rows >= FEWEST_ROWS_ALONE:
            where = setup.place(Role.EVAL_DATASET, Role.EVAL_DATASET_MADE) or dataset.evaluation_place
            where = where or setup.place(Role.TRAINER)
            yield _not_learned("evaluation", evaluation, _proof_of_other("training", train), where)


def _numbered_otherwise(dataset: DatasetFacts) -> tuple[LabelFacts, LabelFacts, tuple[int, ...]] | None:
    """Both sets' labels, and the numbers that stand for one class in training and another in evaluation."""
    train, held = dataset.train.labels, dataset.evaluation.labels if dataset.evaluation else None
    if train is None or held is None or held.kind != "class" or not set(train.class_names) & set(held.class_names):
        return None
    both = enumerate(zip(train.class_names, held.class_names))
    differing = tuple(n for n, (left, right) in both if left != right and (n in train.census or n in held.census))
    return (train, held, differing) if differing else None


def _of_names(train: LabelFacts, held: LabelFacts, differing: tuple[int, ...], setup: SetupFacts) -> Finding:
    first = differing[0]
    rows, total = sum(held.census.get(n, 0) for n in differing), sum(held.census.values())
    known = all(name in train.class_names for name in held.class_names)
    return Finding(
        message=f"label {first} is {train.class_names[first]!r} in the training set and {held.class_names[first]!r} in the "
        f"evaluation set: {rows:,} of {total:,} evaluation rows are scored as the wrong class",
        measured={
            "training_classes": ", ".join(train.class_names[:10]),
            "evaluation_classes": ", ".join(held.class_names[:10]),
            "evaluation_rows": rows,
        },
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER),
        proof=Proof(f"the class names that the two sets declare differ at {', '.join(map(str, differing[:10]))}"),
        repair=_renumber(held.column, [train.class_names.index(name) for name in held.class_names]) if known else None,
        fix=Fix(
            does="use the same class numbering in both sets: encode before the split, or cast both to one ClassLabel(names=…)"
        ),
    )


def _of_numbers(seen: Transfer, dataset: DatasetFacts, setup: SetupFacts) -> Finding:
    (first, other), *_ = seen.renumbered
    classes = dataset.train.labels.classes if dataset.train.labels is not None else 0
    return Finding(
        # Two classes change places where a feature that tells them in training tells the opposite in evaluation, too.
        severity=Severity.WARNING if classes > FEWEST_RENUMBERED else Severity.NOTE,
        message=f"evaluation rows with the label {other} look like training rows with the label {first}"
        + (f", and {len(seen.renumbered) - 1} more classes have another number" if len(seen.renumbered) > 1 else ""),
        measured={
            "renumbered": ", ".join(f"{a}: {b}" for a, b in seen.renumbered[:20]),
            "gain": round(seen.gain, 4),
            "gain_renumbered": round(seen.renumbered_gain, 4),
        },
        where=evaluation_place(dataset, setup),
        proof=Proof(
            f"a probe fitted to the training rows saves {max(seen.gain, 0.0):.0%} of a constant prediction's error on "
            f"{seen.rows:,} evaluation rows, and {seen.renumbered_gain:.0%} with these classes exchanged; their numbers were "
            "read off other rows than those"
        ),
        fix=Fix(
            does="number the classes of both sets alike: fit one encoder on the training labels and use it for both"
        ),
    )


def _in_step(seen: Mispaired, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"the step brings the rows of a batch into another order than their labels: {seen.mispaired} of {seen.rows} rows "
        "get the label of another row",
        measured={"rows": seen.rows, "mispaired": seen.mispaired},
        where=setup.place(Role.TRAIN_CALL, Role.LOADER, Role.TRAINER),
        proof=Proof("each row that the model or the loss gets was found before, at another place than its label"),
        fix=Fix(does="apply one order to inputs and labels in the step: x[order], y[order]"),
    )


def _renumber(column: str, numbers: list[int]) -> Repair:
    def renumbered(item: dict[str, Any], row: int) -> dict[str, Any]:
        return {**item, column: numbers[int(item[column])] if int(item[column]) >= 0 else item[column]}

    def change(call: Call) -> Call:
        held = call.part("eval_dataset")
        if isinstance(held, dict):
            mended: Any = {k: call.tensors.change_rows(v, renumbered) for k, v in held.items()}
        else:
            mended = call.tensors.change_rows(held, renumbered)
        return call.replace(eval_dataset=mended)

    return Repair("number the classes of the evaluation set as in training", Seam.TRAINER, change)


def _tells(source: AlignedSource, train: Alignment) -> bool:
    """Whether a table with labels like the training set's shows that they can be learned from this many rows."""
    return source.alignment.score > LEARNT and source.alignment.rows <= MOST_MORE_ROWS * train.rows


def _tells_alone(train: Alignment) -> bool:
    """Whether a probe that learns nothing proves misplaced labels without another set to compare with."""
    if not train.single or train.control_score <= CONTROL_LEARNT or train.rows < FEWEST_ROWS_ALONE:
        return False
    if train.classes != 2 or (train.likeness or 0.0) < ALIKE:
        return True
    return (train.pair_control_score or 0.0) > CONTROL_LEARNT


def _not_learned(name: str, seen: Alignment, proof: Proof, where: Place | None) -> Finding:
    if seen.accuracy is not None and seen.permuted_accuracy is not None:
        found = (
            f"a probe predicts {seen.accuracy:.1%} of the {name} labels from their inputs, "
            f"and {seen.permuted_accuracy:.1%} of the same labels in random order"
        )
        measured = {"accuracy": seen.accuracy, "permuted_accuracy": seen.permuted_accuracy}
    else:
        found = f"a probe fits the {name} targets no better than the same targets in random order"
        measured = {}
    return Finding(
        message=f"{found} ({seen.rows:,} rows): the labels do not belong to their rows",
        measured={**measured, "rows": seen.rows, "deviations_above_permuted": round(seen.score, 2)},
        where=where,
        proof=proof,
        is_by_probe=True,
        fix=Fix(
            does="find the step that orders inputs and labels separately (a shuffle, sort, sample, merge or filter "
            "of one of them) and apply it to both together"
        ),
    )


def _proof_of_other(name: str, other: Alignment) -> Proof:
    return Proof(
        f"the same probe learns the labels of the {name} set: {other.score:.0f} standard deviations above their "
        f"permutations on {other.rows:,} rows"
    )


def _proof_of_source(source: AlignedSource) -> Proof:
    seen = source.alignment
    return Proof(
        f"the same columns and labels are in {source.expression}, and the same probe learns them there: "
        f"{seen.score:.0f} standard deviations above their permutations on {seen.rows:,} rows"
    )


def _proof_of_control(seen: Alignment) -> Proof:
    return Proof(
        f"the same probe learns a label made from half of the {seen.inputs} given the other half, "
        f"{seen.control_score:.0f} standard deviations above its permutations; these labels reach {seen.score:.1f}"
    )


# Fewer contradictions hardly lower what can be predicted; this is a choice, not a measurement.
SMALLEST_SHARE = 0.1
# Rows of few columns with few values are often equal by chance, and nearly equal to others; see train_eval_overlap.
FEWEST_DIFFERING = 4
# People who label the same rows agree on more than this, or the labels are of little use.
PERMITTED = 0.8


@rule("TW125", Severity.WARNING, raises=False)
def contradictory_labels(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Many rows with a twin of another class."""
    seen = dataset.contradictions
    if seen is None or not contradict(seen):
        return
    first, twin = seen.example
    yield Finding(
        severity=Severity.WARNING if seen.best_accuracy <= PERMITTED else Severity.NOTE,
        message=f"{seen.contradictory:,} of {seen.rows:,} training rows have the same inputs as a row with another label "
        f"(rows {first} and {twin}): at best {seen.best_accuracy:.0%} of the labels can be predicted",
        measured={
            "contradictory_rows": seen.contradictory,
            "rows": seen.rows,
            "best_accuracy": round(seen.best_accuracy, 4),
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)
        or dataset.label_place
        or setup.place(Role.TRAINER),
        proof=Proof(
            f"equal inputs with different labels, counted over {seen.rows:,} rows; such a row differs from the most similar "
            f"other one in {seen.nearest_differing:.0f} of {seen.values} values"
        ),
        fix=Fix(
            does="find the step that repeats inputs (an index, a join, a cache) or mixes up labels; otherwise decide on one "
            "label for each row"
        ),
    )


def contradict(seen: Contradictions | None) -> bool:
    """Whether so many rows contradict each other that it is no chance."""
    return (
        seen is not None
        and seen.contradictory >= SMALLEST_SHARE * seen.rows
        and seen.nearest_differing >= FEWEST_DIFFERING
    )
