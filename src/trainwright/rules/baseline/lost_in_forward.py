"""TW903 lost-in-forward: what the model is given tells the label, and from one call of the forward pass on nothing does.

Why it matters: No error is raised; whatever comes after that call can only predict a constant.
Evidence: The planned training leaves the loss at a constant prediction's. With the weights it ends with, a ridge
regression reads the label from the model's inputs and from every result up to one call, and from none after it.
Fix (manual): Look at that call: it overwrites, saturates, averages away or reorders what it is given, or is frozen and
was never trained.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import ForwardFacts, LearningFacts, SetupFacts, Station


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
