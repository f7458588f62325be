"""TW918 few-distinct-rows: the training learns its few rows by heart, and nothing that holds for the evaluation rows.

Why it matters: A limit for a quick test that was left in, a split whose shares are exchanged, or a few rows that repeat
many times leave most of the data unread. The training loss looks excellent.
Evidence: The planned training is run to its end: rows that it trained on are learned, and on the evaluation rows the loss
is no lower than that of a constant prediction. A probe does learn the labels of the evaluation rows from their inputs, so
such rows can be learned; and training has few distinct rows beside them. Without all of that it is a note.
Fix (manual): Look at how the training rows are chosen: a slice, a sampler, a share of a split.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, SetupFacts, SplitFacts
from trainwright.stages.learning import SHOWN_SHARE, LearningFacts

# Rows that come four times each are repeated on purpose or by mistake; a quarter of the evaluation rows is a split that is
# the wrong way round, or hardly read.
SHARE = 0.25
FEWEST_ROWS, FEWEST_EVALUATED = 32, 64
# Learned by heart: the loss of rows that were trained on has lost at least so much of a constant prediction's.
BY_HEART = 0.3
# Of the probe, in standard deviations of permuted labels: labels that a probe certainly learns.
LEARNED = 10.0


@rule("TW918", Severity.WARNING, residual=True)
def few_distinct_rows(dataset: DatasetFacts, learning: LearningFacts | None, setup: SetupFacts) -> Iterator[Finding]:
    """Few distinct training rows, which may be all that is learned."""
    train, held = dataset.train, dataset.evaluation
    if not train.hashed_all or not train.rows or not train.hashes or train.labels is None:
        return
    distinct = len(train.hashes)
    repeated = train.rows >= FEWEST_ROWS and distinct <= SHARE * train.rows and _vary(train)
    outnumbered = held is not None and len(held.hashes) >= FEWEST_EVALUATED and distinct <= SHARE * len(held.hashes)
    if not (repeated or outnumbered):
        return
    proof = _by_heart(dataset, learning)
    beside = f"; the evaluation set has {len(held.hashes):,}" if held is not None and held.hashes else ""
    yield Finding(
        severity=Severity.WARNING if proof is not None else Severity.NOTE,
        message=(
            f"the {train.rows:,} training rows are only {distinct:,} distinct ones, {train.rows / distinct:.0f} times each"
            if repeated
            else f"training has {distinct:,} distinct rows"
        )
        + beside,
        measured={
            "rows": train.rows,
            "distinct": distinct,
            **({"evaluation_distinct": len(held.hashes)} if held is not None else {}),
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=proof,
        fix=Fix(
            does="look at how the training rows are chosen: a slice for a quick test, a share of a split, a sampler"
        ),
    )


def _vary(train: SplitFacts) -> bool:
    """Whether inputs have so many values that rows are not equal by chance: rows of a few categories are."""
    label = train.labels.column if train.labels else ""
    return any(
        not c.values and c.kind in ("numbers", "float", "text", "texts") for c in train.columns if c.name != label
    )


def _by_heart(dataset: DatasetFacts, learning: LearningFacts | None) -> Proof | None:
    """That the training learned its own rows and no others, although others can be learned."""
    last, trained = (learning.last, learning.trained) if learning is not None else (None, None)
    probe = dataset.evaluation_alignment
    if learning is None or last is None or trained is None or not learning.whole or learning.held_out != "evaluation":
        return None
    if last.share >= SHOWN_SHARE or trained.share < BY_HEART or probe is None or probe.score < LEARNED:
        return None
    return Proof(
        f"after all {last.updates:,} planned updates, rows that it trained on have a loss of {trained.loss:.4g} "
        f"(constant prediction {trained.constant:.4g}) and {learning.rows:,} evaluation rows {last.loss:.4g} "
        f"({last.constant:.4g}); a probe learns the labels of {probe.rows:,} evaluation rows from their inputs, "
        f"{probe.score:.0f} standard deviations above their permutations"
    )
