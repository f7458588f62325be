"""TW102 empty-dataset: a set yields no batch: it has no rows, or less than one batch when the last one is dropped.

Why it matters: Training ends at once or raises inside the sampler. What emptied the set (a filter that matches nothing,
a wrong path or split) is somewhere else.
Evidence: The number of rows, and the batch size if incomplete batches are dropped.
Error: `num_samples should be a positive integer value, but got num_samples=0`
Error: `Trainer: training requires a train_dataset.`
Fix (manual): Look at the line that made the set, or keep the incomplete batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, role_of_split, rule
from trainwright.stages import DatasetFacts, EmptySet, SetupFacts, SplitFacts


@rule("TW102", Severity.ERROR)
def empty_dataset(dataset: DatasetFacts | None, setup: SetupFacts) -> Iterator[Finding]:
    """A set without rows, or without a complete batch."""
    if setup.empty_set is not None:
        yield _given_to_loader(setup.empty_set, setup)
    if dataset is None:
        return
    for split in dataset.splits:
        if split.failure is None and split.rows == 0:
            yield _empty(split, setup)
    rows, size = dataset.train.rows, dataset.batch_size
    if dataset.drops_last and rows and rows < size:
        yield Finding(
            message=f"the train set has {rows} rows, the batch size is {size}, and incomplete batches are dropped: no batch is left",
            measured={"rows": rows, "batch_size": size},
            where=setup.place(
                Role.DATALOADER_DROP_LAST,
                Role.DROP_LAST,
                Role.PER_DEVICE_TRAIN_BATCH_SIZE,
                Role.ARGUMENTS,
                Role.LOADER,
                Role.TRAINER,
            ),
            proof=Proof(f"{rows} // {size} = 0 batches per epoch"),
            repair=Repair("keep the incomplete batch", Seam.TRAINER, _keep_last),
            fix=Fix(does=f"leave {setup.words.drop_last} out, or set a batch size of at most {rows}"),
        )


_MADE = (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)


def _given_to_loader(empty: EmptySet, setup: SetupFacts) -> Finding:
    """A set without rows whose loader ended the script before training."""
    name = f"{empty.expression} ({empty.kind})" if empty.expression else f"the data set ({empty.kind})"
    return Finding(
        message=f"{name} has 0 rows: its loader has nothing to draw from",
        measured={"rows": 0},
        where=empty.where if empty.expression else setup.place(*_MADE) or empty.where,
        proof=Proof(f"its length is 0, and the loader raised {setup.failure}"),
        fix=Fix(does=f"look at how {empty.expression or 'it'} is made: a filter, a split or a path left nothing"),
    )


def _empty(split: SplitFacts, setup: SetupFacts) -> Finding:
    role = role_of_split(split.name)
    given = split.kind != "none"
    message = f"the {split.name} set has 0 rows" if given else f"no {role} was given to {setup.words.trainer}"
    return Finding(
        message=message,
        measured={"rows": 0, "set": split.name},
        where=setup.place(role.made, role, Role.TRAINER) if given else setup.place(Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"len({role}) is 0" if given else f"{role} is None"),
        fix=Fix(
            does=f"look at how {role} is made: a filter, a split or a path left nothing"
            if given
            else f"pass {role}= to {setup.words.trainer}"
        ),
    )


def _keep_last(call: Call) -> Call:
    object.__setattr__(call["arguments"], "dataloader_drop_last", False)
    return call
