"""What a whole training has learned, beside what can be read from its rows."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, ForwardFacts, LearningFacts, OverfitFacts, SetupFacts, SplitFacts, Station
from trainwright.stages.learning import POWER, READABLE, SHOWN_SHARE, UNREADABLE


@rule("TW902", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def lost_in_preparation(learning: LearningFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that a probe reads from the rows, and not from the batches."""
    raw, found = dataset.alignment, learning.information
    if raw is None or found is None or not learning.had_its_chance or not learning.held_at_constant:
        return
    # Scores grow at least as fast as the number of rows, so this is what the rows' labels reach in as many rows.
    reached = raw.score * min(1.0, found.rows / raw.rows)
    if not raw.single or raw.score < READABLE or not found.given.silent or max(reached, found.power) < READABLE:
        return
    batches = f"{found.rows:,} rows of the batches"
    told = "the label can be read from the rows of the data set"
    if raw.accuracy is not None and raw.permuted_accuracy is not None and found.given.accuracy is not None:
        told += f" ({raw.accuracy:.0%} right, {raw.permuted_accuracy:.0%} if they are permuted)"
        batches += f" ({found.given.accuracy:.0%} right)"
    yield Finding(
        message=f"{told}, but not from what the model and the loss are given in {batches}",
        measured={"score_in_rows": raw.score, "score_in_batches": found.given.score},
        where=setup.place(Role.COLLATOR, Role.LOADER, Role.TRAIN_DATASET_MADE, Role.TRAINER, Role.ARGUMENTS),
        proof=Proof(
            f"the planned training was run and learned nothing that holds for other rows; as many rows of the data set "
            f"reach {reached:.0f} standard deviations, the batches {found.given.score:.1f}"
        ),
        fix=Fix(
            does="compare one batch with the rows it came from: the collator, the transform or the step pairs inputs with "
            "labels of other rows, or overwrites one of them"
        ),
    )


@rule("TW903", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def lost_in_forward(learning: LearningFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """The first result of the forward pass from which no probe reads the label any more."""
    found = learning.information
    if found is None or found.lost is None or not learning.had_its_chance or not learning.held_at_constant:
        return
    before, after = found.lost
    frozen = [p for p in forward.parameters if after.kind and p.module == after.module and not p.trainable]
    state = ", whose weights are frozen" if frozen else ""
    yield Finding(
        message=f"the label can be read up to {_named(before)}{_right(before)}, and no longer after {_named(after)}"
        f"{_right(after)}{state}",
        measured={
            "score_before": before.score,
            "score_after": after.score,
            "rows": found.rows,
            "operation": after.name,
        },
        where=after.where or before.where or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            f"the planned training was run and learned nothing; a probe on {found.rows:,} rows reads no more from any later "
            "result than from permuted labels"
        ),
        fix=Fix(
            does=f"look at {_named(after)}: it overwrites, saturates, averages away or reorders what it is given"
            + (", or unfreeze it" if frozen else "")
        ),
    )


def _named(station: Station) -> str:
    return f"{station.name} ({station.kind})" if station.kind and station.kind != station.name else station.name


def _right(station: Station) -> str:
    if station.accuracy is None or station.permuted is None:
        return f" ({station.share:.0%} of it)"
    return f" ({station.accuracy:.0%} right, {station.permuted:.0%} if permuted)"


# Independent random numbers or tokens reach 3, real tables, pictures and texts 12 and more (see misaligned-labels).
STRUCTURED = 6.0
# With fewer rows a probe can miss a relation that a model would find later, also one as strong as the planted one.
FEWEST_PROBED = 150


@rule("TW905", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def unrelated_labels(
    learning: LearningFacts, overfit: OverfitFacts, dataset: DatasetFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """Labels that neither the training nor a probe learns, of inputs that have structure."""
    found, raw, last = learning.information, dataset.alignment, learning.last
    if (
        found is None
        or last is None
        or not learning.had_its_chance
        or not learning.held_at_constant
        or not overfit.learnt
    ):
        return
    if found.rows < FEWEST_PROBED or not found.single or not found.given.silent:
        return
    if found.power < POWER or found.structure < STRUCTURED or (raw is not None and raw.score >= UNREADABLE):
        return
    seen = found.given
    right = (
        f" ({seen.accuracy:.1%} right, {seen.permuted:.1%} of permuted ones)" if seen.accuracy and seen.permuted else ""
    )
    yield Finding(
        message=f"nothing in the inputs tells the labels of {found.rows:,} rows{right}, and {last.updates:,} updates leave the "
        f"loss at {last.loss:.4g}, a constant prediction's {last.constant:.4g}",
        measured={"rows": found.rows, "score": seen.score, "planted": found.power, "structure": found.structure},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER) or dataset.label_place,
        proof=Proof(
            f"one batch is memorized, and labels planted into the same inputs can be read ({found.power:.1f} standard deviations)"
        ),
        fix=Fix(
            does="compare some rows with their source: labels may have been shuffled, sorted or joined apart from their inputs"
        ),
    )


# Rows that come four times each are repeated on purpose or by mistake; a quarter of the evaluation rows is a split that is
# the wrong way round, or hardly read.
FEW_SHARE = 0.25
FEWEST_REPEATED, FEWEST_EVALUATED = 32, 64
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
    repeated = train.rows >= FEWEST_REPEATED and distinct <= FEW_SHARE * train.rows and _vary(train)
    outnumbered = held is not None and len(held.hashes) >= FEWEST_EVALUATED and distinct <= FEW_SHARE * len(held.hashes)
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
