"""TW702 crashing-metrics: the metric function raises an error.

Why it matters: It is first called after an epoch, and its error ends the run.
Evidence: It raised an error on the model's own predictions, before any training; the shapes of its arguments.
Error: `setting an array element with a sequence. The requested array has an inhomogeneous shape`
Error: `'tuple' object has no attribute '…'`
Error: `out of range integral type conversion attempted`
Fix (manual): Write it for the arguments it gets: a tuple if the model returns several outputs, and -100 for labels that
do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.core import Fate, Finding, Fix, Number, Proof, Repair, Role, Safety, Severity, rule
from trainwright.rules.comparisons import by_equality, compared, on_scores
from trainwright.rules.evaluation.metrics_on_logits import metrics_on_logits
from trainwright.rules.evaluation.mismatched_metric import refuses_continuous
from trainwright.rules.metrics import align, fill_ignored, first_of, shapes, take_first_output
from trainwright.stages import EvaluationFacts, Given, SetupFacts


@dataclass(frozen=True)
class Cure:
    """Other arguments on which the function works."""

    given: Given
    says: str
    does: str
    repair: Repair


CURES = (
    Cure(
        Given.FIRST_OUTPUT,
        "it works on the first of them",
        "write predictions = predictions[0] first in compute_metrics",
        take_first_output(),
    ),
    Cure(
        Given.ALIGNED,
        "it works on predictions in the shape of the labels",
        "write predictions = predictions.reshape(labels.shape) first in compute_metrics",
        align(),
    ),
    Cure(
        Given.ZERO_FOR_IGNORED,
        "with another number in their place it works",
        "leave labels of -100 out of the metrics; to decode, write np.where(labels != -100, labels, pad_token_id)",
        fill_ignored(),
    ),
)


@rule("TW702", Severity.ERROR, foretells=Fate.STOPS)
def crashing_metrics(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric function that raises for a reason that no other rule covers."""
    failure = evaluation.metrics_failure
    if evaluation.in_loop:
        yield from _in_loop(evaluation)
        return
    named = metrics_on_logits.function(evaluation, setup)
    if failure is None or refuses_continuous(evaluation) or next(iter(named), None) is not None:
        return
    cure = next((c for c in CURES if evaluation.when(c.given)), None)
    ignored = f"; {evaluation.ignored_share:.0%} of the labels are -100" if evaluation.ignored_share else ""
    labels = evaluation.labels
    measured: dict[str, Number] = {
        "predictions": ", ".join(str(p.shape) for p in evaluation.predictions),
        "labels": str(labels.shape) if labels else "none",
    }
    if ignored:
        measured["ignored_share"] = round(evaluation.ignored_share, 3)
    does = f"make {evaluation.metrics_by} accept these shapes" + (", and leave out labels of -100" if ignored else "")
    if not evaluation.metrics_named:
        does = 'return a dict from compute_metrics: {"accuracy": value}'
    yield Finding(
        message=f"{evaluation.metrics_by} got {shapes(evaluation)} and raised {failure}{ignored}"
        + (f"; {cure.says}" if cure else ""),
        measured=measured,
        where=failure.where or setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(
            f"given {cure.given} it returns {first_of(evaluation.when(cure.given))}"
            if cure
            else "it was called on the model's predictions for evaluation rows, before any training"
        ),
        repair=cure.repair if cure else None,
        fix=Fix(does=cure.does if cure else does, safety=Safety.SAFE if cure else Safety.MANUAL),
    )


def _in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    failure = evaluation.metrics_failure
    failed = next((c for c in evaluation.comparisons if c.failure is not None), None)
    pairs = any(c.of_pair and on_scores(c) for c in evaluation.comparisons)
    if failure is None or pairs or (failed is not None and (on_scores(failed) or by_equality(failed))):
        return
    met = f" comparing predictions of shape {compared(failed)}" if failed is not None else ""
    yield Finding(
        message=f"the evaluation raised {failure}{met}",
        measured={"raised": failure.type},
        where=failure.where,
        proof=Proof("it was run as the script has it"),
        fix=Fix(does="make the evaluation accept these shapes" if met else "fix the evaluation before the long run"),
    )
