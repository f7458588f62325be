"""TW909 learns-nothing: the whole planned training leaves the loss at a constant prediction's, though the inputs tell the labels.

Why it matters: No error is raised, and the saved model predicts the same for every row.
Evidence: The planned training is run to its end. On rows that it does not train on, and on those that it does, the loss
is no lower than that of a constant prediction. A ridge regression does learn the labels from the same inputs.
Fix (manual): Find what keeps the inputs from the output: a frozen or detached part, a rate that is far too low, inputs
that are overwritten or masked out in forward, an activation that saturates; or, if the profile shows the label up to the
scores, what is wrong with the loss or the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import Alignment, DatasetFacts, LearningFacts, SetupFacts

# Of the probe, in standard deviations of permuted labels: labels that a probe certainly learns.
LEARNED = 10.0


@rule("TW909", Severity.WARNING, residual=True, general=True, foretells=Fate.LEARNS_NOTHING)
def learns_nothing(learning: LearningFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A training whose planned updates learn nothing of labels that a simple probe reads from the inputs."""
    last, trained, probe = learning.last, learning.trained, dataset.alignment
    if last is None or trained is None or not learning.had_its_chance or not learning.at_constant:
        return
    if probe is None or not probe.single or probe.score < LEARNED:
        return
    yield Finding(
        message=f"{_made(learning)} leave the loss of {learning.rows:,} rows at {last.loss:.4g}; a "
        f"constant prediction has {last.constant:.4g}, and {_probed(probe)}",
        measured={"loss": last.loss, "constant": last.constant, "updates": last.updates, "trained_loss": trained.loss},
        where=setup.place(Role.TRAINER, Role.ARGUMENTS),
        proof=Proof(
            f"the planned training was run to its end: on rows that it trained on, the loss is {trained.loss:.4g} "
            f"instead of a constant prediction's {trained.constant:.4g}"
        ),
        fix=Fix(does=_advice(learning)),
    )


def _made(learning: LearningFacts) -> str:
    last = learning.last
    assert last is not None
    return f"all {last.updates:,} planned updates" if learning.whole else f"{last.updates:,} updates"


def _advice(learning: LearningFacts) -> str:
    found = learning.information
    if found is not None and found.stations and found.stations[-1].tells:
        return "look at the loss and the optimizer: the label can be read up to the model's last result"
    return (
        "find what keeps the inputs from the output: a frozen or detached part, a rate that is far too low, inputs that are "
        "overwritten or masked in forward, an activation that saturates"
    )


def _probed(probe: Alignment) -> str:
    if probe.accuracy is None or probe.permuted_accuracy is None:
        return "a ridge regression learns the targets from the inputs"
    return (
        f"a ridge regression predicts {probe.accuracy:.0%} of the labels from the inputs ({probe.permuted_accuracy:.0%} "
        f"if they are permuted)"
    )
