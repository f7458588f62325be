"""TW105 misaligned-labels: the labels stand beside other rows than the ones they were made for.

Why it matters: nothing raises and one batch can still be learnt by heart, but nothing learnt holds for other rows;
every change of the model or its rate is tried in vain.
Evidence: a ridge regression on words, pixels or columns predicts the labels of left-out rows no better than it
predicts random permutations of them, although it does learn the labels of the other set, or a label made of half
of the inputs from the other half. Of two classes of sentences that resemble each other, it must also learn what two words tell together.
Fix (manual): shuffle, sort, split and merge inputs and labels together, in one table.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.rule import rule
from trainwright.stages.alignment import Alignment
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.setup import SetupFacts

# In standard deviations of the permutations' scores. The best of four probes on shuffled labels stays under 3 in
# 99 of 100 sets; real labels of 300 tweets in three classes reach 6, of 1,200 they reach 27.
NOTHING_LEARNT = 3.5
LEARNT = 6.0
# The control on 300 tweets reaches 12, on 600 rows of a table 86, on independent random numbers or tokens 3.
CONTROL_LEARNT = 6.0
# With fewer rows and no other set to compare with, a subtle relation could be hidden in the noise.
FEWEST_ROWS_ALONE = 400
# Sentences that differ from each other in a word or in its place may be right or wrong by what no word tells (agreement,
# order): of two classes of such rows the probe on pairs of words must be known to learn what pairs tell. The median row
# of 400 to 1,200 tweets resembles its likest one to 0.3, made-up sentences of few words to 0.6 and more.
ALIKE = 0.45


@rule("TW105", Severity.ERROR)
def misaligned_labels(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that a probe cannot tell from a permutation of themselves."""
    train, evaluation = dataset.alignment, dataset.evaluation_alignment
    if train is not None and train.score < NOTHING_LEARNT:
        if evaluation is not None and evaluation.score > LEARNT and evaluation.rows <= train.rows:
            yield _finding(
                "training", train, _proof_of_other("evaluation", evaluation), setup, "train_dataset"
            )
        elif _tells_alone(train):
            yield _finding("training", train, _proof_of_control(train), setup, "train_dataset")
    elif (
        train is not None
        and evaluation is not None
        and train.score > LEARNT
        and evaluation.score < NOTHING_LEARNT
    ):
        if evaluation.rows >= FEWEST_ROWS_ALONE:
            yield _finding(
                "evaluation", evaluation, _proof_of_other("training", train), setup, "eval_dataset"
            )


def _tells_alone(train: Alignment) -> bool:
    """Whether a probe that learns nothing says, with no other set to compare with, that the labels are misplaced."""
    if not train.single or train.control_score <= CONTROL_LEARNT or train.rows < FEWEST_ROWS_ALONE:
        return False
    if train.classes != 2 or (train.likeness or 0.0) < ALIKE:
        return True
    return (train.pair_control_score or 0.0) > CONTROL_LEARNT


def _finding(name: str, seen: Alignment, proof: Proof, setup: SetupFacts, role: str) -> Finding:
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
        message=f"{found} ({seen.rows:,} rows): the labels do not belong to the rows they stand beside",
        measured={**measured, "rows": seen.rows, "deviations_above_permuted": round(seen.score, 2)},
        where=setup.place(role, f"{role}_made", "trainer"),
        proof=proof,
        fix=Fix(does="find the step that orders inputs and labels separately (a shuffle, sort, sample, merge or filter "
                "of one of them) and apply it to both together"),
    )  # fmt: skip


def _proof_of_other(name: str, other: Alignment) -> Proof:
    return Proof(
        f"the same probe learns the labels of the {name} set: {other.score:.0f} standard deviations above their "
        f"permutations on {other.rows:,} rows"
    )


def _proof_of_control(seen: Alignment) -> Proof:
    return Proof(
        f"the same probe learns a label made of half of the {seen.inputs} from the other half, "
        f"{seen.control_score:.0f} standard deviations above its permutations; these labels reach {seen.score:.1f}"
    )
