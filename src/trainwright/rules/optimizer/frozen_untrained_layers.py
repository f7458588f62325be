"""TW615 frozen-untrained-layers: layers that were never trained are frozen, so their random weights stay random.

Why it matters: The rest of the model learns on top of noise, or a fresh head never learns at all; the loss stalls.
Evidence: Frozen weights that no checkpoint provided, or that have the distribution of a fresh initialization, in layers
that the model uses. With them unfrozen, the batch is learned clearly better, on three seeds; or they leave almost
nothing for the head. Where the rest learns the batch all the same, it is a note: random features are a known method.
Fix (unsafe): Do not freeze them, or load a checkpoint first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from trainwright.core import Diagnosis, Fate, Finding, Fix, Outcome, Place, Proof, Role, Safety, Severity, Trial, rule
from trainwright.rules.repairs import unfreeze
from trainwright.stages import ForwardFacts, ParameterFacts, SetupFacts

# One random layer below a trained one is a known method: random features (Rahimi and Recht 2007), reservoirs.
FEWEST_LAYERS = 2
# A model whose loss falls below this share of where it began learns in spite of its random layers.
STALLED_SHARE = 0.5


@rule("TW615", Severity.ERROR, foretells=Fate.UNTRAINED)
def frozen_untrained_layers(forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """Frozen random weights in layers that were called; training them helps."""
    frozen = forward.frozen_untrained
    if not frozen or not any(p.trainable for p in forward.parameters):
        return
    modules = {p.module for p in frozen}
    if len(modules) < FEWEST_LAYERS and not (forward.head and forward.head.name in modules):
        return
    names = _with_norms(modules, forward)
    change = unfreeze(names, f"train the {len(names)} frozen parameters that nothing has trained")
    severity = Severity.ERROR
    proof: Proof | Outcome | None = _fresh_head(frozen, forward) or _missing(frozen, setup) or _drowned(forward)
    if proof is None:
        proof = outcome = yield Trial(change=change, steps=24)
        if not outcome.clearly_better:
            return
        if outcome.start and fmean(outcome.before) < STALLED_SHARE * fmean(outcome.start):
            severity = Severity.NOTE
    total = sum(_size(p) for p in forward.parameters)
    size = sum(_size(p) for p in frozen)
    yield Finding(
        severity=severity,
        message=f"{len(frozen)} frozen layers were never trained ({frozen[0].name} first): {size:,} of {total:,} weights "
        "keep their random initial values",
        measured={
            "frozen_untrained": len(frozen),
            "weights": size,
            "share": round(size / total, 4),
            "first": frozen[0].name,
        },
        where=_line(frozen) or setup.place(Role.MODEL, Role.TRAINER),
        proof=proof,
        repair=change,
        fix=Fix(does="do not freeze them, or start from a trained checkpoint", safety=Safety.UNSAFE),
    )


def _with_norms(modules: set[str], forward: ForwardFacts) -> list[str]:
    """The frozen parameters of these layers, and of frozen, untrained layers without matrices."""
    others = {p.module for p in forward.parameters if p.trainable or len(p.shape) > 1} - modules
    return [
        p.name
        for p in forward.parameters
        if not p.trainable and p.module not in others and (p.module in modules or p.may_be_untrained)
    ]


def _fresh_head(frozen: Sequence[ParameterFacts], forward: ForwardFacts) -> Proof | None:
    """Scores of a random layer on top of a trained model; clearly they stay random, so no experiment is needed."""
    head = forward.head.name if forward.head else None
    fresh = [p.name for p in frozen if p.freshly_initialised and p.module == head]
    return Proof(f"{fresh[0]}, which computes the scores, is frozen and not part of the checkpoint") if fresh else None


def _missing(frozen: Sequence[ParameterFacts], setup: SetupFacts) -> Proof | None:
    """Layers that a loaded checkpoint did not contain; nobody means to keep those random."""
    missing = [p.name for p in frozen if p.freshly_initialised]
    if not setup.loads_checkpoint or not missing:
        return None
    return Proof(f"the model's checkpoint does not contain {len(missing)} of the frozen matrices")


def _drowned(forward: ForwardFacts) -> Proof | None:
    """Random layers that remove the signal: no training of later layers can recover it."""
    given = forward.head.inputs[0] if forward.head and forward.head.inputs else None
    if given is None or not forward.drowned_in_frozen:
        return None
    return Proof(f"the head's input varies by only {given.deviation or 0.0:.2g} over the rows of a batch")


def _line(frozen: Sequence[ParameterFacts]) -> Place | None:
    """The line that froze the most of them."""
    lines = Counter(p.frozen_at for p in frozen if p.frozen_at is not None)
    return lines.most_common(1)[0][0] if lines else None


def _size(parameter: ParameterFacts) -> int:
    return math.prod(parameter.shape)
