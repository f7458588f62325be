"""The value of the loss."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core import Diagnosis, Fate, Finding, Fix, Proof, Repair, Seam, Severity, Trial, rule
from trainwright.core.thresholds import OUTWEIGHS
from trainwright.rules.fixes import unsafe
from trainwright.rules.places import loss_place
from trainwright.rules.repairs import at_loss
from trainwright.stages import CLASS_LOSSES, ForwardFacts, LossCall, LossFacts, SetupFacts
from trainwright.stages.loss import BINARY_LOSSES, TIMES_CHANCE


@rule("TW412", Severity.WARNING, residual=True)
def surprising_initial_loss(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A first loss far above an uninformed model's, fixed by smaller scores."""
    call = loss.call
    if call is None or loss.expected is None or call.failure or call.inputs.non_finite:
        return
    # The mean square of a regression's targets says nothing where a network makes them, as in reinforcement learning.
    if call.function != "cross_entropy" or setup.loads_checkpoint or setup.trained_before:
        return
    value, factor = call.plain_value, call.inputs.deviation or 0.0
    if value is None or not value > TIMES_CHANCE * loss.expected > 0 or factor <= 1:
        return
    change = at_loss(
        f"divide the scores by {factor:.3g}", call.function, lambda one: one.replace(logits=one["logits"] / factor)
    )
    outcome = yield Trial(change=change, steps=30)
    # Smaller scores naturally start lower, so the unchanged model must also fail to reach a constant prediction.
    if not outcome.clearly_better or min(outcome.before) < loss.expected or max(outcome.after) > loss.expected:
        return
    yield Finding(
        message=f"the first loss is {value:.4g} nats; an uninformed model would score {loss.expected:.4g}",
        measured={"first_loss": value, "expected": loss.expected, "largest_score": call.inputs.maximum or 0.0},
        where=loss_place(loss, setup),
        proof=outcome,
        repair=change,
        fix=Fix(does=f"make the scores about {factor:.2g} times smaller (a temperature, a sum, inputs in large units)"),
    )


# A margin loss is 0 once every row satisfies the margin, and then small changes of the weights do not change it; these
# losses reach 0 only if they depend on nothing.
_NEVER_RESTING = (*CLASS_LOSSES, *BINARY_LOSSES)


@rule("TW413", Severity.ERROR, foretells=Fate.STANDS_STILL)
def constant_loss(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss that stays the same when all weights change."""
    if not loss.unchanged_by_weights or loss.value is None:
        return
    if loss.value == 0 and loss.function not in _NEVER_RESTING:
        return
    call = loss.call
    one = (
        call is not None
        and call.function == "cross_entropy"
        and len(call.inputs.shape) == 2
        and call.inputs.shape[1] == 1
    )
    why = ": the softmax of a single output is 1, whatever the model computes" if one else ""
    yield Finding(
        message=f"the loss is {loss.value:.4g} and does not depend on the weights{why}",
        measured={"loss": loss.value, **({"outputs": 1} if one else {})},
        where=loss_place(loss, setup),
        proof=Proof("moving every trained weight by a tenth of its spread leaves the loss the same to the last bit"),
        repair=_binary(call) if one and call is not None else None,
        fix=Fix(
            does=f"use {setup.words.loss('binary_cross_entropy_with_logits')} for one output"
            if one
            else "compute the loss from the model's output"
        ),
    )


def _binary(seen: LossCall) -> Repair | None:
    """The loss for one output, if the targets are 0 and 1 in the outputs' shape."""
    if seen.targets.shape != seen.inputs.shape or not set(seen.target_values) <= {0.0, 1.0}:
        return None

    return at_loss(
        "compute binary_cross_entropy_with_logits instead of cross_entropy",
        "cross_entropy",
        lambda call: call.without("weight").replace(function="binary_cross_entropy_with_logits"),
    )


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
    first = forward.non_finite_from.where if forward.non_finite_from else None
    weights = int(loss.call.options.get("non_finite_weights", 0)) if loss.call else 0
    cause = f"{weights} class weights are not finite" if weights else ""
    yield Finding(
        message=f"the loss is {loss.value}, although the scores are finite: "
        + "; ".join(filter(None, [cause, _which(loss, bad)])),
        measured={"rows_without_a_finite_loss": len(bad), "rows": len(loss.row_losses), "non_finite_weights": weights},
        where=(loss.call.at if loss.call else None) or first or loss_place(loss, setup),
        proof=Proof(f"the scores are finite, from {scores.minimum:.3g} to {scores.maximum:.3g}"),
        repair=Repair("remove the class weights", Seam.LOSS, lambda call: call.without("weight")) if weights else None,
        fix=Fix(
            does="give every class a finite weight"
            if weights
            else "keep the logarithms and divisions of the loss "
            "away from 0 (log_softmax instead of log of softmax, a small number under a division)"
        ),
    )


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


# Terms whose factors differ by more than this were weighted on purpose.
_SAME_FACTOR = 1.5


@rule("TW415", Severity.WARNING)
def unequal_loss_terms(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """Unweighted terms of very different sizes, of which the small ones are not learned."""
    terms = [(i, c, abs(c.value * c.factor)) for i, c in enumerate(loss.calls) if c.value and c.factor]
    if (penalty := _of_penalty(loss)) is not None:
        yield penalty
    if len(terms) < 2 or len(terms) < len(loss.calls):
        return
    factors = [abs(c.factor or 0.0) for _, c, _ in terms]
    number, large, size = max(terms, key=lambda t: t[2])
    rest = max(s for i, _, s in terms if i != number)
    if max(factors) > _SAME_FACTOR * min(factors) or size < OUTWEIGHS * rest:
        return
    outcome = yield Trial(
        change=_term(number, f"train without the term {large.function}", trained=False, shown=False),
        against=_term(number, f"the loss without the term {large.function}, trained with it", shown=False),
    )
    if not outcome.clearly_better:
        return
    yield Finding(
        message=f"{large.function} is {size:.3g} of the summed loss and the next term {rest:.3g}: "
        f"{size / rest:,.0f} times larger, and the smaller one is learned clearly worse because of it",
        measured={"largest_term": size, "next_term": rest, "terms": len(terms)},
        where=large.at or loss_place(loss, setup),
        proof=outcome,
        repair=_term(number, f"multiply the term {large.function} by {rest / size:.2g}", scale=rest / size),
        fix=unsafe("weight the terms, or scale the targets of the large one to unit variance"),
    )


def _of_penalty(loss: LossFacts) -> Finding | None:
    """A term beside a loss over classes, if that is nothing beside it."""
    other, rest = loss.largest_other, sum(abs(one.value) for one in loss.terms if one.function)
    if other is None or other.is_constant or not loss.chance_nats or not rest:
        return None
    size = abs(other.value)
    if size < OUTWEIGHS * rest:
        return None
    return Finding(
        severity=Severity.NOTE,
        message=f"of a loss of {loss.value:,.5g}, this line adds {other.value:,.5g}: {size / rest:,.0f} times what "
        f"{loss.function} adds, which is {rest:.4g}",
        measured={"largest_term": size, "next_term": rest, "terms": len(loss.terms)},
        where=other.where,
        fix=unsafe("weight the term, or take its mean instead of its sum"),
    )


def _term(number: int, does: str, **wanted: float | bool) -> Repair:
    return Repair(does, Seam.LOSS, lambda call: call.replace(**wanted) if call["number"] == number else call)
