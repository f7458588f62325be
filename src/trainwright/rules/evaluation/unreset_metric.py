"""TW706 unreset-metric: the evaluation's counters are not reset between passes.

Why it matters: The accuracy grows with every epoch whatever the model learns, or mixes all epochs, with old weights and
new.
Evidence: The variable's value before and after a pass, and as the next one begins.
Fix (safe): Set it to zero or call reset() at the beginning of each pass (in Keras, in the metric's reset_state).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import Counter, EvaluationFacts


@rule("TW706", Severity.ERROR)
def unreset_metric(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """Evaluation counters whose second pass adds to the first."""
    for counter in evaluation.counters:
        if not counter.survives:
            continue
        once = f"{counter.once:.4g}"
        passes = f"{once} after one pass, {counter.twice:.4g} after two over the same rows"
        begins = f"the second pass begins with the {once} that the first one came to"
        yield Finding(
            message=f"{counter.name} is not reset: {begins if counter.carried else passes}, so it covers all passes so far",
            measured={"once": round(counter.once, 4), "twice": round(counter.twice, 4)},
            where=counter.begun_at or counter.added_at,
            proof=Proof(f"its value before each batch of the first passes, the first of them {counter.start:.4g}")
            if counter.carried
            else Proof(
                f"two passes over the same batches with the same weights added "
                f"{counter.once - counter.start:.4g} and {counter.twice - counter.once:.4g}"
            ),
            fix=Fix(does=_does(counter), safety=Safety.SAFE),
        )


def _does(counter: Counter) -> str:
    if counter.set_back_by:
        return f"assign 0 to {counter.name.rpartition('.')[2]} in {counter.set_back_by}"
    if "." in counter.name:
        return f"reset {counter.name.split('.')[0]} at the beginning of each pass"
    return f"write {counter.name} = {counter.start:g} at the beginning of each pass, inside the loop over epochs"
