"""TW612 decayed-norms: the filter that should exempt biases and norms from weight decay matches none of them, or no norm.

Why it matters: A filter with names from another framework ("LayerNorm", "gamma") leaves its group empty, or with the
biases alone, and nobody notices.
Evidence: The group without decay is empty, and the other group contains biases and norms; or the group without decay
holds all biases, and the other all scales of the norms.
Fix (unsafe): Match the names of the model's own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Role, Safety, Severity, rule
from trainwright.stages import ForwardFacts, OptimizerFacts, SetupFacts


@rule("TW612", Severity.NOTE)
def decayed_norms(optimizer: OptimizerFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A group without decay that is empty or holds the biases alone, next to a group that decays the norms."""
    spared = [g for g in optimizer.groups if g.weight_decay == 0]
    flat = {p.name for p in forward.parameters if len(p.shape) < 2}
    decayed = [n for g in optimizer.groups if g.weight_decay > 0 for n in g.names if n in flat]
    if not optimizer.user_built or not spared or not decayed:
        return
    if any(g.tensors for g in spared):
        yield from _biases_alone([n for g in spared for n in g.names], decayed, flat, setup)
        return
    yield Finding(
        message=f"the group without weight decay is empty; {len(decayed)} biases and norms are decayed ({decayed[0]} first)",
        measured={"decayed": len(decayed), "first": decayed[0]},
        where=setup.place(Role.OPTIMIZER, Role.TRAINER),
        fix=Fix(does=f"match the model's parameter names, such as {decayed[0]}", safety=Safety.UNSAFE),
    )


def _biases_alone(held: list[str], decayed: list[str], flat: set[str], setup: SetupFacts) -> Iterator[Finding]:
    """The filter matched every bias and not one of the norms' scales."""
    if not held or not all(name in flat and _is_bias(name) for name in held) or any(_is_bias(name) for name in decayed):
        return
    yield Finding(
        message=f"the group without weight decay holds biases only; {len(decayed)} scales of norms are decayed ({decayed[0]} first)",
        measured={"decayed": len(decayed), "first": decayed[0]},
        where=setup.place(Role.OPTIMIZER, Role.TRAINER),
        fix=Fix(does=f"match the model's parameter names, such as {decayed[0]}", safety=Safety.UNSAFE),
    )


def _is_bias(name: str) -> bool:
    return name.rpartition(".")[2] == "bias"
