"""TW414 non-finite-loss: the loss is NaN or infinite, although the scores are finite.

Why it matters: One such step makes every weight NaN; the Trainer logs it as `loss: 0.0`.
Evidence: The loss of each row by itself, and the label that the rows without a finite loss have in common.
Fix (manual): Give every class a finite weight, and keep logarithms and divisions away from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Place, Proof, Repair, Seam, Severity, rule
from trainwright.rules.places import loss_place
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts


@rule("TW414", Severity.ERROR)
def non_finite_loss(loss: LossFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A non-finite loss although all scores are finite."""
    if loss.value is None or math.isfinite(loss.value):
        return
    scores = loss.call.inputs if loss.call else forward.output
    targets = loss.call.targets if loss.call else None
    if scores is None or scores.non_finite or (targets is not None and targets.non_finite):
        return
    if forward.output is not None and forward.output.non_finite:
        return
    bad = [i for i, x in enumerate(loss.row_losses) if not math.isfinite(x)]
    weights = int(loss.call.options.get("non_finite_weights", 0)) if loss.call else 0
    cause = f"{weights} class weights are not finite" if weights else ""
    yield Finding(
        message=f"the loss is {loss.value}, although the scores are finite: "
        + "; ".join(filter(None, [cause, _which(loss, bad)])),
        measured={"rows_without_a_finite_loss": len(bad), "rows": len(loss.row_losses), "non_finite_weights": weights},
        where=(loss.call.at if loss.call else None) or _origin(forward) or loss_place(loss, setup),
        proof=Proof(f"the scores are finite, from {scores.minimum:.3g} to {scores.maximum:.3g}"),
        repair=Repair("remove the class weights", Seam.LOSS, _unweighted) if weights else None,
        fix=Fix(
            does="give every class a finite weight"
            if weights
            else "keep the logarithms and divisions of the loss "
            "away from 0 (log_softmax instead of log of softmax, a small number under a division)"
        ),
    )


def _origin(forward: ForwardFacts) -> Place | None:
    """Where the first non-finite value was seen."""
    return forward.non_finite_from.where if forward.non_finite_from else None


def _which(loss: LossFacts, bad: list[int]) -> str:
    """The rows whose own loss is not finite, and what they have in common."""
    rows = len(loss.row_losses)
    if not bad or not rows:
        return "no single row's loss is to blame" if rows else "its rows could not be examined separately"
    text = f"that of {len(bad)} of {rows} rows is not finite"
    if len(loss.row_labels) < rows:
        return text
    shared = {loss.row_labels[i] for i in bad}
    others = {x for i, x in enumerate(loss.row_labels) if i not in bad}
    if len(bad) < rows and len(shared) <= 3 and not shared & others:
        return f"{text}, and these are the rows with label {' or '.join(f'{x:g}' for x in sorted(shared))}"
    return text


def _unweighted(call: Call) -> Call:
    return call.without("weight")
