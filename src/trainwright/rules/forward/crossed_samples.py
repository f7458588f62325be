"""TW312 crossed-samples: a row's output depends on the other rows in its batch, or on its place among them.

Why it matters: The model is trained on mixtures of rows, and its prediction changes with the rest of the batch.
Evidence: In evaluation mode, row 0's output changes when the other rows are replaced; the finding names the first call
where this happens. Or copies of one row have different outputs in different places of the batch. Or the scores given to
the loss sum to one over the rows. Scores that compare rows with each other (N, N), and batch statistics, are not reported.
Fix (manual): Use permute or transpose instead of view or reshape to swap dimensions, and batch_first=True for recurrent
and attention layers. Do not take a softmax or mean over dimension 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import ForwardFacts, LossCall, LossFacts, SetupFacts

# Relative to the output's scale; batched products differ by about 1e-6 between batches.
LEAKING_BEYOND = 1e-3
# Products in 16 bits may round equal rows in different places of a batch differently, by a hundredth at most.
PLACED_BEYOND = 0.02
_OVER_CLASSES = "take the softmax over the classes: dim=-1 instead of dim=0"


@rule("TW312", Severity.ERROR)
def crossed_samples(forward: ForwardFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """A row's output that depends on other rows, or scores that are probabilities over the rows."""
    over_rows = next((c for c in loss.calls if _over_rows(c)), None) if loss is not None else None
    leaks = forward.leaking_rows is not None and forward.leaking_rows > LEAKING_BEYOND
    if leaks and not _compares_rows(forward):
        yield _leak(forward, forward.leaking_rows or 0.0, over_rows, setup)
    elif over_rows is not None:
        yield _normalised_over_rows(over_rows, setup)
    elif forward.placed_rows is not None and forward.placed_rows > PLACED_BEYOND and not leaks:
        yield _placed(forward, forward.placed_rows, setup)


def _compares_rows(forward: ForwardFacts) -> bool:
    """Whether the output has a score for each pair of rows, as contrastive models have."""
    shape = forward.output.shape if forward.output is not None else ()
    return len(shape) == 2 and shape[0] == shape[1]


def _leak(forward: ForwardFacts, leak: float, over_rows: LossCall | None, setup: SetupFacts) -> Finding:
    origin, row = forward.leak_from, forward.leaking_row
    first = f", from {origin.operation} on" if origin else ""
    softmax = over_rows.activation_at or over_rows.softmax_at if over_rows else None
    return Finding(
        message=f"row {row}'s output changes by {leak:.2g} of its scale when only the other rows of the batch change{first}",
        measured={"relative_change": leak, "operation": origin.operation if origin else ""},
        where=softmax or (origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof(f"only the rows other than row {row} were replaced, in evaluation mode"),
        repair=_over_classes(over_rows) if over_rows else None,
        fix=Fix(
            does=_OVER_CLASSES
            if softmax
            else "keep the rows separate: permute instead of view, batch_first=True, or a dimension other than 0"
        ),
    )


def _placed(forward: ForwardFacts, change: float, setup: SetupFacts) -> Finding:
    """Positions that are added along the batch, say."""
    origin = forward.placed_from
    first = f", from {origin.operation} on" if origin else ""
    return Finding(
        message=f"the outputs of equal rows differ by {change:.2g} of their scale, by their place in the batch alone{first}",
        measured={"relative_change": change, "operation": origin.operation if origin else ""},
        where=(origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof(
            "the batch was filled with copies of its first row, in evaluation mode, twice with other random numbers"
        ),
        fix=Fix(
            does="let no value depend on the row's number: positions belong to the axis of the sequence, which comes second "
            "if the batch comes first"
        ),
    )


def _over_rows(call: LossCall) -> bool:
    return call.failure is None and (call.columns_sum_to_one or call.columns_log_normalised)


def _normalised_over_rows(call: LossCall, setup: SetupFacts) -> Finding:
    """A softmax over axis 0 between the model and its loss."""
    rows, classes = call.inputs.shape[:2]
    what = "probabilities" if call.columns_sum_to_one else "log-probabilities"
    return Finding(
        message=f"the scores given to {call.function} are {what} over the {rows} rows of the batch, for each of "
        f"{classes} classes; each row should be normalized over its classes instead",
        measured={"rows": rows, "classes": classes, "function": call.function},
        where=call.softmax_at or call.activation_at or call.at or setup.place(Role.MODEL),
        proof=Proof(f"each of the {classes} columns sums to 1 over the rows, and the rows' own sums differ from 1"),
        repair=_over_classes(call),
        fix=Fix(does=_OVER_CLASSES, safety=Safety.SAFE),
    )


def _over_classes(seen: LossCall) -> Repair | None:
    """The scores with each row normalized over the classes; None for other kinds of losses."""
    function, use_log = seen.function, seen.columns_sum_to_one
    if function not in ("cross_entropy", "nll_loss"):
        return None

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        scores = call.tensors.log(call["logits"]) if use_log else call["logits"]
        return call.replace(logits=call.tensors.log_softmax(scores))

    return Repair("normalize the scores over the classes", Seam.LOSS, change)
