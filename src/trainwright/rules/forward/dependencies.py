"""What the output depends on: other rows, later tokens, or too little."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import safe
from trainwright.stages import ForwardFacts, LossCall, LossFacts, SetupFacts

DEEP = 6  # sigmoid or tanh layers one behind another
WHOLLY_DEAD = 0.99  # share of a rectifier's units that no row of the batch reaches


@rule("TW307", Severity.ERROR, foretells=Fate.LEARNS_NOTHING)
def constant_output(forward: ForwardFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """The same output for different inputs, whatever the weights."""
    if loss is None or loss.failure is not None:
        return  # what raised comes first
    if not forward.same_for_other_inputs or not forward.same_when_perturbed:
        return
    if forward.drowned_in_frozen:
        return  # frozen-untrained-layers names that
    if any((m.dead_share or 0.0) > WHOLLY_DEAD for m in forward.modules):
        return  # dead-units names that
    if sum(m.kind in ("Sigmoid", "Tanh") for m in forward.modules) >= DEEP:
        return  # each takes four fifths of a difference or more: vanishing-gradients names that
    origin, output = forward.constant_from, forward.output
    after = f" after {origin.operation}" if origin else ""
    shape = f" {output.shape}" if output else ""
    yield Finding(
        message=f"two batches of different inputs give the same output{shape}: there is no difference{after}",
        measured={"operation": origin.operation if origin else "", "relative_difference": 0.0},
        where=(origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof(
            "the outputs agree to 1e-6 of their scale, both with the original weights and with every weight moved"
        ),
        fix=Fix(does=f"fix the call of {origin.operation}" if origin else "make the output depend on the input"),
    )


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
    last = " and with the weights that the run ends with" if forward.has_last_weights else ""
    return Finding(
        severity=Severity.WARNING if forward.has_last_weights else Severity.ERROR,
        message=f"row {row}'s output changes by {leak:.2g} of its scale when only the other rows of the batch change{first}",
        measured={"relative_change": leak, "operation": origin.operation if origin else ""},
        where=softmax or (origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof(f"only the rows other than row {row} were replaced, in evaluation mode{last}"),
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
        fix=safe(_OVER_CLASSES),
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


SEEING_BEYOND = 1e-3  # of the output's scale; sums in another order differ by some 1e-6


@rule("TW313", Severity.ERROR)
def future_leak(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A next-token loss with outputs that depend on later tokens."""
    leak = forward.future_leak
    if leak is None or leak <= SEEING_BEYOND or not forward.predicts_next_token:
        return
    origin = forward.future_from
    first = f", from {origin.operation} on" if origin else ""
    yield Finding(
        message=f"the model is trained to predict the next token, but its outputs change by {leak:.2g} of their scale when only later tokens change{first}",
        measured={"relative_change": leak, "operation": origin.operation if origin else ""},
        where=(origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof("only tokens of the second half were changed, and outputs of the first half changed too"),
        fix=Fix(does=setup.words.causal_mask),
    )


# Inputs that need not matter: masks of rows of one length, what a model passes on, labels among the arguments.
_BESIDE = re.compile(r"mask|label|target|length|position|token_type|index|\bids?\b|weight|step")


@rule("TW317", Severity.WARNING)
def ignored_input(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs that differ between rows but have no effect."""
    if forward.same_for_other_inputs and forward.same_when_perturbed:
        return  # none of them has any
    last = ", with the weights that the run ends with" if forward.has_last_weights else ""
    for name in forward.ignored_inputs:
        is_meant = not forward.has_last_weights or _BESIDE.search(name.lower()) is not None
        yield Finding(
            severity=Severity.NOTE if is_meant else Severity.WARNING,
            message=f"the model gets {name}, but its output stays the same when the rows of {name} are permuted",
            measured={"input": name},
            where=setup.place(Role.MODEL),
            proof=Proof(f"{name} was shifted by one row{last}: neither scores nor loss changed"),
            fix=Fix(does=f"use {name} in the model's forward, or leave it out of the batch"),
        )
