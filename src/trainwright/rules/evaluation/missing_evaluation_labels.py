"""TW711 missing-evaluation-labels: the evaluation returns neither a loss nor metrics because it finds no labels.

Why it matters: No error is raised. The log shows only runtimes, and no best checkpoint can be chosen.
Evidence: The label names that the framework looks for, compared with the keys of an evaluation batch.
Fix (safe): Pass label_names=["…"] to TrainingArguments, or give the column the same name as in training.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, SetKeyword, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, EvaluationFacts, SetupFacts


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
            fix=Fix(
                does=f"pass label_names={names} to {setup.words.arguments}",
                safety=Safety.SAFE,
                edits=(SetKeyword(at.file, at.line, "label_names", repr(names), setup.words.arguments),) if at else (),
            ),
        )
    elif (other := _other_column(dataset, batch)) is not None and (label := batch.label_key) is not None:
        yield Finding(
            message=f"the evaluation returns no loss and no metrics: it {looked}, and the set has {other} instead",
            measured={**measured, "column": other},
            where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER),
            proof=Proof(f"training batches contain {label}; evaluation batches contain {keys}"),
            repair=_rename(other, label),
            fix=Fix(does=f'rename the column: rename_column("{other}", "{label}")', safety=Safety.SAFE),
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
    def change(call: Call) -> Call:
        return call.replace(label_names=names)

    return Repair(f"look for the labels under {', '.join(names)}", Seam.TRAINER, change)


def _rename(old: str, new: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(eval_dataset=call.part("eval_dataset").rename_column(old, new))

    return Repair(f"rename the column {old} of the evaluation set to {new}", Seam.TRAINER, change)
