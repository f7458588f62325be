"""Targets in another form than the loss expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.places import loss_place, rename_loss
from trainwright.rules.repairs import at_loss, swap_activation
from trainwright.stages import (
    CLASS_LOSSES,
    DISTANCES,
    ELEMENTWISE,
    IGNORED_LABEL,
    BatchFacts,
    GradientFacts,
    LossCall,
    LossFacts,
    SetupFacts,
    TensorFacts,
)

_OF_TYPES = ("dtype", "result type", "scalar type")
# Python's number types and the corresponding dtypes.
_OBJECTS = {"int": "int64", "float": "float32", "bool": "int64"}
_BINARY = "binary_cross_entropy_with_logits"


@rule("TW405", Severity.ERROR, foretells=Fate.STOPS)
def wrong_target_dtype(
    loss: LossFacts, setup: SetupFacts, batch: BatchFacts | None, gradients: GradientFacts | None
) -> Iterator[Finding]:
    """A loss that raised because of the targets' dtype."""
    call = loss.call
    failure = loss.failure or (gradients.failure if gradients else None)
    if call is None and failure is not None and batch is not None:
        yield from _of_objects(batch, setup)
    if call is None or failure is None or call.casts_targets:
        return
    wanted, function = _wanted_dtype(call, failure.message)
    if not wanted or (wanted == call.targets.dtype and function == call.function):
        return
    taken = (
        f": {call.function} was chosen for them" if function != call.function else f"; {call.function} takes {wanted}"
    )
    yield Finding(
        message=f"the targets are {call.targets.dtype}, one per row{taken}"
        if len(call.targets.shape) == 1
        else f"the targets are {call.targets.dtype}{taken}",
        measured={"target_dtype": call.targets.dtype, "wanted_dtype": wanted, "target_shape": str(call.targets.shape)},
        where=_labels_place(setup, loss, batch, call),
        proof=Proof(f"{failure.type}: {failure.message.strip().splitlines()[0]}"),
        repair=_cast(call.function, function, wanted),
        fix=safe(f"make the labels {wanted} where they are built"),
    )


def _wanted_dtype(call: LossCall, message: str) -> tuple[str, str]:
    """The dtype that the targets should have, and the loss that accepts them; "" if the dtype is not the cause."""
    scores, targets = call.inputs, call.targets
    whole = bool(call.target_values) and all(v == int(v) and v >= IGNORED_LABEL for v in call.target_values)
    if call.function in CLASS_LOSSES:
        if scores.shape == targets.shape and targets.is_integer:
            return ("float32", call.function) if max(call.target_values, default=2) <= 1 else ("", "")
        one_a_row = len(targets.shape) == len(scores.shape) - 1
        return ("int64", call.function) if one_a_row and targets.dtype != "int64" and whole else ("", "")
    if call.function == _BINARY and len(scores.shape) == 2 and targets.shape == scores.shape[:1] and targets.is_float:
        fits = whole and scores.shape[1] > 1 and max(call.target_values) < scores.shape[1] + 1
        return ("int64", "cross_entropy") if fits else ("", "")
    if call.function in ELEMENTWISE and any(word in message for word in _OF_TYPES):
        return (scores.dtype, call.function) if targets.dtype != scores.dtype else ("", "")
    return "", ""


def _labels_place(setup: SetupFacts, loss: LossFacts, batch: BatchFacts | None, call: LossCall) -> Place | None:
    """Where the labels are built, if they reach the loss unchanged; otherwise the loss call."""
    labels = batch.labels if batch else None
    if call.at and (labels is None or labels.dtype != call.targets.dtype):
        return call.at
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET) or loss.at or setup.place(Role.TRAINER)


def _cast(function: str, instead: str, dtype: str) -> Repair:
    told = f", and compute {instead}" if instead != function else ""
    return at_loss(
        f"cast the targets to {dtype}{told}",
        function,
        lambda call: call.replace(function=instead, targets=call.tensors.cast(call["targets"], dtype)),
    )


def _of_objects(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Numbers stored as Python objects in an array, which cannot be converted to a tensor."""
    for key in batch.target_keys or ():
        kind = batch.others.get(key, "").removeprefix("object array of ")
        if kind not in _OBJECTS:
            continue
        dtype = _OBJECTS[kind]

        def cast(call: Call, key: str = key, dtype: str = dtype) -> Call:
            return call.replace(**{key: np.asarray(call[key]).astype(dtype)})

        yield Finding(
            message=f"the targets are an array of Python objects ({kind}), which cannot be converted to a tensor",
            measured={"target_dtype": "object", "wanted_dtype": dtype},
            where=setup.place(Role.LABELS_MADE, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
            proof=Proof(f"each of the batch's targets is a Python {kind}; cast to {dtype}, the step works"),
            repair=Repair(f"cast the targets to {dtype}", Seam.BATCH, cast),
            fix=safe(f'give the targets one number type: .astype("{dtype}")'),
        )


SPARSE, DENSE, BINARY = "sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"


@rule("TW406", Severity.ERROR)
def sparse_dense_mismatch(loss: LossFacts, setup: SetupFacts, batch: BatchFacts | None = None) -> Iterator[Finding]:
    """Targets in the other form than the loss expects, in training or only in the evaluation."""
    call, evaluated = next((c for c in loss.calls if _fitting_loss(c)), None), loss.evaluation_call
    if call is not None:
        where, other = loss_place(loss, setup), _fitting_loss(call)
        fix = safe(f"use {other}", rename_loss(call.own_name, other, where, setup))
        yield _in_other_form(call, where, _exchange(call.own_name, other), fix)
    elif evaluated is not None and (other := _fitting_loss(evaluated)) and batch and batch.label_key:
        where = setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAIN_CALL)
        repair = _reform(batch.label_key, evaluated.inputs.shape[-1] if other == SPARSE else 0)
        fix = safe("use labels of the same form in the evaluation as in training")
        yield _in_other_form(evaluated, where, repair, fix, in_evaluation=True)


def _in_other_form(
    call: LossCall, where: Place | None, repair: Repair, fix: Fix, *, in_evaluation: bool = False
) -> Finding:
    scores, targets, other = call.inputs.shape, call.targets.shape, _fitting_loss(call)
    what = f"one-hot rows {targets}" if other == DENSE else f"class indices {targets}"
    takes = "class indices" if other == DENSE else f"a row of {scores[-1]} numbers for each label"
    only = " in the evaluation; in training the targets have the form that it expects" if in_evaluation else ""
    of = " of an evaluation batch" if in_evaluation else ""
    return Finding(
        message=f"{call.own_name} expects {takes}, but gets {what} for outputs {scores}{only}",
        measured={"outputs": str(scores), "targets": str(targets), "loss": call.own_name, "fitting_loss": other},
        where=where,
        proof=Proof(f"the loss{of} raised {call.failure}") if call.failure else None,
        repair=repair,
        fix=fix,
    )


def _fitting_loss(call: LossCall) -> str:
    """The loss that takes such targets; empty if the present loss does."""
    scores, targets = call.inputs.shape, call.targets.shape
    if len(scores) < 2 or scores[-1] < 2:
        return ""
    if call.own_name == SPARSE and targets == scores and _shares(call):
        return DENSE
    if call.own_name in (DENSE, BINARY) and targets in (scores[:-1], (*scores[:-1], 1)) and _indices(call):
        return SPARSE if call.own_name == DENSE or (call.largest_target or 0) > 1 else ""
    return ""


def _shares(call: LossCall) -> bool:
    low, high = call.targets.minimum, call.targets.maximum
    return low is not None and high is not None and low >= 0 and high <= 1


def _indices(call: LossCall) -> bool:
    """Whether all targets are nonnegative whole numbers."""
    whole = all(v == int(v) for v in call.target_values) if call.target_values else call.targets.is_integer
    return whole and (call.smallest_target or 0) >= 0


def _exchange(own: str, other: str) -> Repair:
    return Repair(
        f"compute {other} instead", Seam.LOSS, lambda call: call.replace(own=other) if call["own"] == own else call
    )


def _reform(label: str, width: int) -> Repair:
    """Turn the evaluation's class indices into one-hot rows of this width; with width 0, the reverse."""

    def of(row: Mapping[str, Any], number: int) -> dict[str, Any]:
        given = np.asarray(row[label])
        return {**row, label: np.eye(width, dtype="float32")[int(given.item())] if width else given.argmax()}

    return Repair(
        "convert the evaluation's labels to the form of the training labels",
        Seam.TRAINER,
        lambda call: call.replace(eval_dataset=call.tensors.change_rows(call.part("eval_dataset"), of)),
    )


# Losses that compare each output, a probability where it is one, with its own target.
_OF_OUTPUTS = ("binary_cross_entropy", *DISTANCES)


@rule("TW410", Severity.WARNING)
def softmax_on_multilabel(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets of 0 and 1 with several ones per row, compared with probabilities that sum to one."""
    call = next((c for c in loss.calls if _shares_probability(c)), None)
    if call is None:
        return
    several, rows = call.rows_of_several_labels, call.targets.shape[0]
    soft = call.function in _OF_OUTPUTS
    shared = "a softmax makes all labels of a row share a total probability of 1"
    if _divides(call):
        shared = f"{call.own_name} makes all labels of a row share a total probability of 1"
    yield Finding(
        message=f"{several} of the batch's {rows} rows have several labels, and {shared}",
        measured={"rows_of_several_labels": several, "rows": rows},
        where=(call.activation_at if soft else None) or call.at or setup.place(Role.MODEL),
        proof=Proof(
            f"the targets of {several} rows sum to more than 1, but the probabilities they are compared with sum to 1"
        ),
        repair=_binary_form(call),
        fix=unsafe(_advice_on_labels(call, setup)),
    )


def _shares_probability(call: LossCall) -> bool:
    """Whether rows of targets contain several ones, while the probabilities of a row sum to one."""
    several = call.rows_of_several_labels and set(call.target_values) <= {0.0, 1.0}
    if not several or len(call.inputs.shape) != 2:
        return False
    if call.function in _OF_OUTPUTS:
        return call.rows_sum_to_one
    return call.function == "cross_entropy" or _divides(call)


def _divides(call: LossCall) -> bool:
    """Whether the loss takes probabilities and normalizes each row to a sum of one."""
    return call.function == "nll_loss" and call.takes_indices is False


def _advice_on_labels(call: LossCall, setup: SetupFacts) -> str:
    if call.function in _OF_OUTPUTS:
        return "use a sigmoid instead of the softmax"
    if call.from_logits is not False:
        return f"use {setup.words.multilabel_loss}"
    return f"use {setup.words.loss('binary_cross_entropy')}" + (
        "" if call.activation == "sigmoid" else ", and a sigmoid in the last layer"
    )


def _binary_form(seen: LossCall) -> Repair | None:
    """The loss that judges each label separately; None if both the softmax and the loss would have to be replaced."""
    function = seen.function
    if function in _OF_OUTPUTS:
        return swap_activation("sigmoid", seen) if seen.activation == "softmax" else None
    if function != "cross_entropy" and seen.rows_sum_to_one:
        return None
    binary = "binary_cross_entropy" + ("_with_logits" if function == "cross_entropy" else "")

    return at_loss(
        f"compute {binary} instead of {function}",
        function,
        lambda call: call.without("weight").replace(function=binary),
    )


@rule("TW421", Severity.ERROR)
def swapped_targets(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A class loss whose targets are not class numbers, although another output's targets are."""
    keys = batch.target_keys or ()
    if len(keys) != len(loss.outputs) or len(keys) < 2:
        return
    for number, call in enumerate(loss.calls[: len(keys)]):
        if not call.takes_indices or not call.targets.is_float:
            continue
        fitting = [i for i, key in enumerate(keys) if i != number and _fits(call, batch.tensors.get(key))]
        if len(fitting) == 1:
            yield _swapped(call, keys[number], keys[fitting[0]], loss, setup)
            return


def _fits(call: LossCall, targets: TensorFacts | None) -> bool:
    """Whether targets are class numbers that a loss accepts."""
    if targets is None or not targets.is_integer or targets.minimum is None or targets.maximum is None:
        return False
    return targets.minimum >= 0 and targets.maximum < call.inputs.shape[-1]


def _swapped(call: LossCall, given: str, other: str, loss: LossFacts, setup: SetupFacts) -> Finding:
    low, high = call.targets.minimum or 0.0, call.targets.maximum or 0.0
    return Finding(
        message=f"{call.own_name or call.function} expects class numbers 0 to {call.inputs.shape[-1] - 1}, but gets {given}, "
        f"which ranges from {low:.3g} to {high:.3g} and is not integer; {other} holds such class numbers, but goes to another loss",
        measured={"given": given, "fitting": other, "outputs": ", ".join(loss.outputs)},
        where=setup.place(Role.LABELS, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"the loss raised {loss.failure}") if loss.failure else None,
        repair=Repair(
            f"exchange {given} and {other}",
            Seam.BATCH,
            lambda batch: batch.replace(**{given: batch[other], other: batch[given]}),
        ),
        fix=safe(
            f"give the targets in the order of the outputs ({', '.join(loss.outputs)}), or as a dictionary by "
            "these names"
        ),
    )
