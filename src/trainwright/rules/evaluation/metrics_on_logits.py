"""TW701 metrics-on-logits: the metric function compares scores with labels.

Why it matters: it raises, or returns nonsense, after a whole epoch; the message speaks of shapes only.
Evidence: it was given (N, C) scores for (N) labels and failed; given the index of each row's largest score, it works.
Error: `operands could not be broadcast together with shapes`
Error: `only size-1 arrays can be converted to Python scalars`
Error: `Classification metrics can't handle a mix of`
Fix (safe): take the argmax over the classes first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.setup import SetupFacts


@rule("TW701", Severity.ERROR)
def metrics_on_logits(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric function that fails on scores, and works on classes."""
    works = evaluation.metrics_on_classes
    if evaluation.metrics_failure is None or isinstance(works, str) or not works or not evaluation.predictions:
        return
    scores, labels = evaluation.predictions[0], evaluation.labels
    shapes = f"{scores.shape}" + (f" for labels {labels.shape}" if labels else "")
    name, value = next(iter(works.items()))
    yield Finding(
        message=f"compute_metrics was given scores of shape {shapes} and raised {evaluation.metrics_failure.type}; "
        f"it works on their argmax",
        measured={"scores": str(scores.shape), "labels": str(labels.shape) if labels else "none"},
        where=evaluation.metrics_failure.where or setup.place("metrics"),
        proof=Proof(f"on the argmax over the last axis it returns {name} = {value:.4g}"),
        repair=Repair("take the argmax over the classes before the metrics", Seam.METRICS, _argmax),
        fix=Fix(does="write predictions = np.argmax(predictions, axis=-1) first in compute_metrics", safety=Safety.SAFE),
    )


def _argmax(call: Call) -> Call:
    scores = call["predictions"]
    scores = scores[0] if isinstance(scores, tuple) else scores
    return call.replace(predictions=scores.argmax(-1) if scores.ndim > 1 else scores)
