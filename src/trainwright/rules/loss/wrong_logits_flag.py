"""TW404 wrong-logits-flag: the loss expects scores but gets probabilities, or the reverse.

Why it matters: Nothing fails. Scores taken for probabilities are clipped to 0 and 1, so the loss and its gradients are
computed from other numbers than the model's. Probabilities taken for scores pass through a second softmax, and the loss
cannot fall below ln(1 + (C-1)/e) for C classes. A loss given as a string expects probabilities.
Evidence: The range of the loss's input compared with its from_logits. With the other setting the batch is learned
better, or the input cannot be what the setting says.
Fix (safe): Set from_logits to match the last layer's output.
"""

from __future__ import annotations

import math

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Place,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.places import loss_place
from trainwright.stages import LossCall, LossFacts, SetupFacts


@rule("TW404", Severity.ERROR)
def wrong_logits_flag(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A loss whose from_logits setting does not fit the range of its inputs."""
    call = next((c for c in loss.calls if c.misreads_scores or _reads_probabilities(c)), None)
    if call is None or call.from_logits is None:
        return
    if call.misreads_scores:
        yield _scores(call, loss, setup)
        return
    change = _set(call, from_logits=False)
    outcome = yield Trial(change=change, steps=16)
    if outcome.clearly_worse:
        return
    floor = math.log(1 + (call.inputs.shape[-1] - 1 if _of_classes(call) else 1) / math.e)
    word = call.activation or "softmax"
    yield Finding(
        message=f"{_name(call)} has from_logits=True but gets the result of a {word}: it cannot fall below "
        f"{floor:.4f} nats",
        measured={
            "from_logits": 1,
            "smallest_score": call.inputs.minimum or 0.0,
            "largest_score": call.inputs.maximum or 0.0,
            "lowest_loss_nats": floor,
        },
        where=call.activation_at or loss_place(loss, setup),
        proof=outcome
        if outcome.clearly_better
        else Proof(f"all scores are between 0 and 1; even with the best possible ones, the loss is {floor:.4f} nats"),
        repair=change,
        fix=Fix(does=f"remove the {word} from the last layer, or set from_logits=False", safety=Safety.SAFE),
    )


def _scores(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    """Scores that the loss treats as probabilities."""
    low, high = call.inputs.minimum or 0.0, call.inputs.maximum or 0.0
    value = f": the loss is {call.value:.4g}" if call.value is not None else ""
    return Finding(
        message=f"{_name(call)} expects probabilities (from_logits=False) but gets scores from {low:.3g} to "
        f"{high:.3g}{value}",
        measured={"from_logits": 0, "smallest_score": low, "largest_score": high},
        where=loss_place(loss, setup),
        proof=Proof(f"a probability is between 0 and 1; {low:.3g} is not")
        if low < 0
        else Proof(f"a probability is between 0 and 1; {high:.3g} is not"),
        repair=_set(call, from_logits=True),
        fix=Fix(
            does=f"pass {_class(call)}(from_logits=True) as the loss, or end the model with a "
            f"{'softmax' if _of_classes(call) else 'sigmoid'}",
            safety=Safety.SAFE,
            edits=_edits(call, setup),
        ),
    )


def _reads_probabilities(call: LossCall) -> bool:
    """Whether the loss treats probabilities as scores."""
    if call.from_logits is not True or not call.in_unit_range or call.failure or not call.activation_module:
        return False  # what the script's own code made probabilities is double-activation's
    if _of_classes(call):
        return call.rows_sum_to_one or call.activation == "sigmoid"
    return call.activation in ("sigmoid", "softmax")


def _of_classes(call: LossCall) -> bool:
    return call.takes_indices is not None


def _name(call: LossCall) -> str:
    return call.own_name or call.function


def _class(call: LossCall) -> str:
    """The class of a loss function: SparseCategoricalCrossentropy for sparse_categorical_crossentropy."""
    name = "".join(word.capitalize() for word in _name(call).split("_"))
    return f"{call.library}.losses.{name}" if call.library else name


def _edits(call: LossCall, setup: SetupFacts) -> tuple[SetKeyword, ...]:
    """Replace the loss's name with an object, if the script's own name for the library is known."""
    where: Place | None = setup.place(Role.LOSS)
    named = setup.arguments.get("loss")
    if where is None or not call.library or named is None or not isinstance(named.value, str):
        return ()
    return (SetKeyword(where.file, where.line, "loss", f"{_class(call)}(from_logits=True)", "compile", position=1),)


def _set(seen: LossCall, *, from_logits: bool) -> Repair:
    function = seen.function

    def change(call: Call) -> Call:
        return call.replace(from_logits=from_logits) if call["function"] == function else call

    return Repair(f"compute {_name(seen)} with from_logits={from_logits}", Seam.LOSS, change)
