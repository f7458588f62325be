"""TW415 unequal-loss-terms: of several terms added up to the loss, one is hundreds of times larger than the others.

Why it matters: The others have no effect: their gradients are negligible next to that of the large one.
Evidence: The size of each term in the minimized sum. Without the large one, the others are learned clearly better. A term
that no loss function computes (a penalty) is a note by its size alone, and the cause where the whole run learns nothing.
Fix (unsafe): Weight the terms, or bring their targets to the same scale.
"""

from __future__ import annotations

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Safety, Seam, Severity, Trial, rule
from trainwright.core.thresholds import OUTWEIGHS
from trainwright.rules.places import loss_place
from trainwright.stages import LossFacts, SetupFacts

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
        fix=Fix(does="weight the terms, or scale the targets of the large one to unit variance", safety=Safety.UNSAFE),
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
        fix=Fix(does="weight the term, or take its mean instead of its sum", safety=Safety.UNSAFE),
    )


def _term(number: int, does: str, **wanted: float | bool) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(**wanted) if call["number"] == number else call

    return Repair(does, Seam.LOSS, change)
