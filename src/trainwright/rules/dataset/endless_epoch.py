"""TW120 endless-epoch: a data set repeats forever, and nothing says how many steps an epoch has.

Why it matters: The first epoch never ends. Anything that happens at the end of an epoch (validation, checkpoints, early
stopping, the next epoch) never happens. If it is the validation set, training hangs at its first validation.
Evidence: The data set's own number of batches, which is infinite, and the absence of steps_per_epoch or
validation_steps.
Error: `When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value`
Error: `When providing an infinite dataset, you must specify the number of steps to run`
Fix (safe): Set steps_per_epoch (validation_steps), or remove `.repeat()`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Number, Proof, Role, Safety, SetKeyword, Severity, role_of_split, rule
from trainwright.stages import DatasetFacts, EndlessSet, SetupFacts

_STAYS = {"train": "the first epoch never ends", "evaluation": "the first validation never ends"}


@rule("TW120", Severity.ERROR, raises=False)
def endless_epoch(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An infinite set that training would iterate over until it ends."""
    read = {split.name: split.sampled for split in dataset.splits}
    for endless in dataset.endless:
        role = role_of_split(endless.name)
        yield Finding(
            message=f"the {endless.name} set repeats forever and {endless.argument} is not set: {_STAYS[endless.name]}",
            measured=_measured(endless, read[endless.name]),
            where=setup.place(role.made, role, Role.TRAIN_CALL),
            proof=Proof("the data set reports an infinite number of batches"),
            fix=_fix(endless, setup),
        )


def _measured(endless: EndlessSet, sampled: int) -> dict[str, Number]:
    measured: dict[str, Number] = {"sampled_rows": sampled}
    return {**measured, "batches_repeated": endless.batches} if endless.batches else measured


def _fix(endless: EndlessSet, setup: SetupFacts) -> Fix:
    call = setup.place(Role.TRAIN_CALL)
    if not endless.batches or call is None:
        return Fix(does=f"pass {endless.argument} to fit, or remove .repeat() so that the set ends", safety=Safety.SAFE)
    return Fix(
        does=f"pass {endless.argument}={endless.batches} to fit, which is one pass, or remove .repeat()",
        safety=Safety.SAFE,
        edits=(SetKeyword(call.file, call.line, endless.argument, str(endless.batches), "fit"),),
    )
