"""TW760 uncopied-best-weights: the weights kept as the best are not a copy, and training goes on changing them.

Why it matters: state_dict() returns the model's own tensors, which every step updates. The weights that are loaded,
saved or returned at the end as the best are the last ones, and early stopping gains nothing.
Evidence: After a pass of the loop, the kept tensors share their memory with parameters that the optimizer updates, and
a later line uses them.
Fix (manual): Keep a copy, copy.deepcopy(model.state_dict()), or save the weights to a file at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.stages import EvaluationFacts


@rule("TW760", Severity.ERROR)
def uncopied_best_weights(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """Weights kept of the best evaluation that are the trained parameters themselves."""
    for kept in evaluation.kept_weights:
        subject = "is the model itself" if kept.is_module else "is no copy"
        yield Finding(
            message=f"{kept.name} = {kept.written} {subject}: training goes on to update its {kept.tensors} tensors, so "
            f"line {kept.used_at.line} uses the last weights, not the best",
            measured={"tensors": kept.tensors},
            where=kept.where,
            proof=Proof(
                f"after a pass of the loop, {kept.tensors} tensors of {kept.name} share their memory with parameters "
                "of the optimizer"
            ),
            fix=Fix(does=f"write {kept.name} = copy.deepcopy({kept.written})"),
        )
