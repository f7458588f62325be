"""A pass over the evaluation set: its rows, its labels, its mode, its memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core import Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import safe, set_keyword, unsafe
from trainwright.stages import BatchFacts, DatasetFacts, EvaluationFacts, SetupFacts

# Joining the parts at the end needs a second copy, so at most half of the memory can be used.
MOST_OF_MEMORY = 0.5
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4}
GIB = 2**30


@rule("TW708", Severity.ERROR)
def retained_logits(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Predictions of the whole evaluation set that need more than half of the memory."""
    rows, memory = evaluation.rows, evaluation.memory_bytes
    if not evaluation.keeps_predictions or not rows or not memory:
        return
    row_bytes = sum(prod(p.shape[1:]) * BYTES.get(p.dtype, 4) for p in evaluation.predictions if p.shape)
    needed = rows * row_bytes
    if needed <= MOST_OF_MEMORY * memory:
        return
    shapes = ", ".join(str(p.shape[1:]) for p in evaluation.predictions)
    yield Finding(
        message=f"the evaluation keeps {shapes} scores for each of {rows:,} rows, {needed / GIB:,.0f} GiB; "
        f"the machine has {memory / GIB:,.0f} GiB",
        measured={"needed_bytes": needed, "memory_bytes": memory, "rows": rows, "row_bytes": row_bytes},
        where=setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(f"{rows:,} rows x {row_bytes:,} bytes are {needed / memory:.1f} times the machine's memory"),
        fix=Fix(does=setup.words.fewer_predictions),
    )


@rule("TW711", Severity.WARNING)
def missing_evaluation_labels(
    evaluation: EvaluationFacts, dataset: DatasetFacts, batch: BatchFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """A labeled evaluation set whose labels the evaluation does not find."""
    if not evaluation.present or evaluation.failure or not evaluation.batch_keys or not evaluation.metrics:
        return
    wanted = evaluation.label_keys
    if any(n.endswith("loss") for n in evaluation.metrics) or evaluation.returned or evaluation.metrics_failure:
        return
    looked = (
        f"looks for {', '.join(wanted)}"
        if wanted
        else "looks for no label, because no argument of forward is named label"
    )
    keys = ", ".join(evaluation.batch_keys)
    measured = {"looked_for": ", ".join(wanted) or "nothing", "batch_keys": keys}
    if evaluation.loss_keys:
        names = list(evaluation.loss_keys[:1])
        at = setup.place(Role.ARGUMENTS)
        yield Finding(
            message=f"the evaluation returns no loss and no metrics: it {looked}, but the batch contains {keys}",
            measured=measured,
            where=setup.place(Role.LABEL_NAMES) or at,
            proof=Proof(f"the model gives a loss for an evaluation batch with {names[0]}, and none without it"),
            repair=_look_for(names),
            fix=safe(
                f"pass label_names={names} to {setup.words.arguments}",
                set_keyword(at, "label_names", repr(names), setup.words.arguments),
            ),
        )
    elif (other := _other_column(dataset, batch)) is not None and (label := batch.label_key) is not None:
        yield Finding(
            message=f"the evaluation returns no loss and no metrics: it {looked}, and the set has {other} instead",
            measured={**measured, "column": other},
            where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER),
            proof=Proof(f"training batches contain {label}; evaluation batches contain {keys}"),
            repair=_rename_column(other, label),
            fix=safe(f'rename the column: rename_column("{other}", "{label}")'),
        )


def _other_column(dataset: DatasetFacts, batch: BatchFacts) -> str | None:
    """The only column of the training labels' kind that the evaluation set has and the training set lacks."""
    labels = dataset.train.labels
    if dataset.evaluation is None or labels is None:
        return None
    mine = dataset.train.column(labels.column)
    only = [
        c for c in dataset.evaluation.columns if dataset.train.column(c.name) is None and c.name not in batch.accepts
    ]
    same = [c.name for c in only if mine is not None and c.kind == mine.kind]
    return same[0] if len(same) == 1 else None


def _look_for(names: list[str]) -> Repair:
    return Repair(
        f"look for the labels under {', '.join(names)}", Seam.TRAINER, lambda call: call.replace(label_names=names)
    )


def _rename_column(old: str, new: str) -> Repair:
    return Repair(
        f"rename the column {old} of the evaluation set to {new}",
        Seam.TRAINER,
        lambda call: call.replace(eval_dataset=call.part("eval_dataset").rename_column(old, new)),
    )


@rule("TW714", Severity.WARNING)
def evaluation_on_training_data(
    evaluation: EvaluationFacts, dataset: DatasetFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """A single evaluation set with the rows of the training set; as one of several sets, it is intentional."""
    train, held = dataset.train, dataset.evaluation
    if held is None or evaluation.set_names or not train.rows or train.rows != held.rows or train.hashes != held.hashes:
        return
    # Inputs with only a few distinct values coincide even in unrelated sets.
    if len(train.hashes) * 2 < train.hashed or not train.hashes:
        return
    yield Finding(
        message=f"the evaluation set consists of the {train.rows:,} rows of the training set",
        measured={"rows": train.rows, "compared": train.hashed, "different": 0},
        where=setup.place(Role.EVAL_DATASET) or dataset.evaluation_place or setup.place(Role.TRAINER),
        proof=Proof(f"the inputs of all {train.hashed:,} rows that were compared are the same in both sets"),
        fix=unsafe(
            "split before training (train_test_split), and pass the held-out part as " + setup.words.evaluation_data
        ),
    )


@rule("TW763", Severity.ERROR, raises=False)
def reshuffled_predictions(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """Predictions on a set whose order is another in the pass that reads the labels."""
    seen = evaluation.reshuffled
    if seen is None:
        return
    yield Finding(
        message=f"{seen.expression} is shuffled anew in each pass: the predictions made here and the labels read in line "
        f"{seen.labels_at.line} are those of different rows",
        where=seen.where,
        proof=Proof(f"two passes over {seen.expression} gave the labels in different orders"),
        fix=Fix(
            does="collect predictions and labels in one pass over the set, or build it without shuffling (shuffle=False)"
        ),
    )
