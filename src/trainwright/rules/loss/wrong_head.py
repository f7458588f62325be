"""TW408 wrong-head: a head for whole rows gets one label per token, the reverse, or several scores meet one real number.

Why it matters: The loss stops with a message about batch sizes that nobody chose.
Evidence: The shape of the labels in the batch, and how many scores and targets reached the loss.
Error: `Target size … must be the same as input size …`
Error: `logits` and `labels` must have the same shape`
Error: `Expected input batch_size (…) to match target batch_size (…).`
Fix (manual): Use the model class whose head gives one score vector per label.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.stages import BatchFacts, LossCall, LossFacts, SetupFacts

_BINARY = "binary_cross_entropy_with_logits"


@rule("TW408", Severity.ERROR)
def wrong_head(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss that raised because the numbers of score vectors and labels differ: one per row versus one per token."""
    call, labels = loss.call, batch.labels
    if call is None or call.failure is None or labels is None:
        return
    if _real_labels(call):
        yield _one_output(call, setup)
        return
    if call.function != "cross_entropy":
        return
    if "batch_size" not in call.failure.message and "batch size" not in call.failure.message:
        return
    given, wanted = _vectors(call.inputs.shape), _vectors((*call.targets.shape, 1))
    per_token = len(labels.shape) == 2 and labels.shape[1] > 1
    one_a_row = labels.shape in ((batch.rows,), (batch.rows, 1))
    if per_token and given == batch.rows and wanted == batch.rows * labels.shape[1]:
        message = (
            f"there is one label per token ({labels.shape}), but the model outputs {given} score vectors, one per row"
        )
        fix = "use a head for tokens (AutoModelForTokenClassification), or give each row one label"
        repair = None
    elif one_a_row and given > batch.rows and given % batch.rows == 0 and wanted == batch.rows:
        message = (
            f"there is one label per row ({labels.shape}), but the model outputs {given} score vectors, one per token"
        )
        fix = "use a head for whole rows (AutoModelForSequenceClassification), or give each token a label"
        repair = _first_of_each(batch.rows)
    else:
        return
    yield Finding(
        message=f"{message} ({setup.model_class})",
        measured={"score_vectors": given, "labels": wanted, "rows": batch.rows},
        where=setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"{call.failure.type}: {call.failure.message}"),
        repair=repair,
        fix=Fix(does=fix),
    )


def _real_labels(call: LossCall) -> bool:
    """Whether one real number per row was compared with several scores per row."""
    scores, targets = call.inputs.shape, call.targets
    if call.function != _BINARY or not targets.is_float or len(scores) != 2 or scores[1] < 2:
        return False
    if targets.shape not in (scores[:1], (*scores[:1], 1)):
        return False
    classes = bool(call.target_values) and all(v == int(v) and 0 <= v < scores[1] for v in call.target_values)
    return not classes


def _one_output(call: LossCall, setup: SetupFacts) -> Finding:
    width, targets = call.inputs.shape[1], call.targets
    return Finding(
        message=f"the labels are real numbers from {targets.minimum:.3g} to {targets.maximum:.3g}, one per row, but the "
        f"head outputs {width} scores per row ({setup.model_class})",
        measured={"outputs": width, "smallest_label": targets.minimum or 0.0, "largest_label": targets.maximum or 0.0},
        where=setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"{call.failure.type}: {call.failure.message}" if call.failure else ""),
        repair=Repair("take the first score as the value, and compute mse_loss", Seam.LOSS, _as_regression),
        fix=Fix(does="give the model one output for a regression (num_labels=1)"),
    )


def _as_regression(call: Call) -> Call:
    scores, targets = call["logits"], call["targets"]
    if call["function"] != _BINARY or len(scores.shape) != 2:
        return call
    return call.replace(function="mse_loss", logits=scores[:, 0], targets=call.tensors.reshape(targets, (len(scores),)))


def _vectors(shape: tuple[int, ...]) -> int:
    """Number of score vectors in a shape (N, C) or (N, C, …)."""
    count = shape[0] if shape else 0
    for size in shape[2:]:
        count *= size
    return count


def _first_of_each(rows: int) -> Repair:
    def change(call: Call) -> Call:
        scores = call["logits"]
        if call["function"] != "cross_entropy" or len(scores.shape) != 2 or len(scores) == len(call["targets"]):
            return call
        count = len(call["targets"])
        return call.replace(logits=call.tensors.reshape(scores, (count, -1, scores.shape[1]))[:, 0])

    return Repair("score each row by its first token", Seam.LOSS, change)
