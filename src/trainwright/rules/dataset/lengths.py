"""Sets without rows, without an end, or with too few batches."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Number, Proof, Role, Seam, Severity, role_of_split, rule
from trainwright.rules.fixes import safe, set_keyword
from trainwright.rules.repairs import acting
from trainwright.stages import DatasetFacts, EmptySet, EndlessSet, EpochFacts, SetupFacts, SplitFacts


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
            repair=acting(
                "keep the incomplete batch",
                Seam.TRAINER,
                lambda call: object.__setattr__(call["arguments"], "dataloader_drop_last", False),
            ),
            fix=Fix(does=f"leave {setup.words.drop_last} out, or set a batch size of at most {rows}"),
        )


_MADE = (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)


def _given_to_loader(empty: EmptySet, setup: SetupFacts) -> Finding:
    """A set without rows whose loader ended the script before training, or gave it no batch."""
    raised = f", and the loader raised {setup.failure}" if setup.failure is not None else ""
    name = f"{empty.expression} ({empty.kind})" if empty.expression else f"the data set ({empty.kind})"
    return Finding(
        message=f"{name} has 0 rows: its loader has nothing to draw from",
        measured={"rows": 0},
        where=empty.where if empty.expression else setup.place(*_MADE) or empty.where,
        proof=Proof(f"its length is 0{raised}"),
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


# An incomplete last batch, or a few batches because steps_per_epoch was rounded up, do not matter.
LOST_SHARE = 0.05


@rule("TW117", Severity.WARNING)
def exhausted_data(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Fewer steps than requested, or than the epochs would have with one pass each."""
    epochs = dataset.epochs
    if epochs is None or not epochs.wanted:
        return
    lost = epochs.wanted - sum(epochs.steps)
    if lost <= LOST_SHARE * epochs.wanted:
        return
    shown = ", ".join(map(str, epochs.steps[:6])) + (", …" if len(epochs.steps) > 6 else "")
    asked = f"{epochs.asked} steps per epoch" if epochs.asked else f"{epochs.batches} batches per epoch"
    yield Finding(
        message=f"{_ending(epochs)}: the epochs will have {shown} steps, {sum(epochs.steps)} in total instead of "
        f"{epochs.wanted} ({len(epochs.steps)} x {asked})",
        measured={
            "batches": epochs.batches,
            "asked": epochs.asked or epochs.batches,
            "epochs": epochs.epochs,
            "steps": sum(epochs.steps),
            "wanted": epochs.wanted,
        },
        where=setup.place(Role.STEPS_PER_EPOCH, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"one pass over the data gave {epochs.batches} batches"),
        fix=_begin_again(epochs),
    )


def _ending(epochs: EpochFacts) -> str:
    if epochs.again < epochs.batches:
        return f"the data can be iterated only once and ends after {epochs.batches} batches"
    return f"one pass over the data has {epochs.batches} batches, but an epoch has {epochs.asked} steps"


def _begin_again(epochs: EpochFacts) -> Fix:
    if epochs.again < epochs.batches:
        does = "let the generator start over when it ends (while True) and set steps_per_epoch; or pass a data set"
    else:
        does = "leave out steps_per_epoch, or repeat the data (.repeat())"
    return safe(does)


_STAYS = {"train": "the first epoch never ends", "evaluation": "the first validation never ends"}


@rule("TW120", Severity.ERROR, raises=False)
def endless_epoch(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An infinite set that training would iterate over until it ends."""
    read = {split.name: split.sampled for split in dataset.splits}
    for endless in dataset.endless:
        role = role_of_split(endless.name)
        yield Finding(
            message=f"the {endless.name} set repeats forever and {endless.argument} is not set: {_STAYS[endless.name]}",
            measured=_measured_of_endless(endless, read[endless.name]),
            where=setup.place(role.made, role, Role.TRAIN_CALL),
            proof=Proof("the data set reports an infinite number of batches"),
            fix=_ended(endless, setup),
        )


def _measured_of_endless(endless: EndlessSet, sampled: int) -> dict[str, Number]:
    measured: dict[str, Number] = {"sampled_rows": sampled}
    return {**measured, "batches_repeated": endless.batches} if endless.batches else measured


def _ended(endless: EndlessSet, setup: SetupFacts) -> Fix:
    call = setup.place(Role.TRAIN_CALL)
    if not endless.batches or call is None:
        return safe(f"pass {endless.argument} to fit, or remove .repeat() so that the set ends")
    return safe(
        f"pass {endless.argument}={endless.batches} to fit, which is one pass, or remove .repeat()",
        set_keyword(call, endless.argument, str(endless.batches), "fit"),
    )
