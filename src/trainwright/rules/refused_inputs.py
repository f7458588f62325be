"""Inputs that a layer, or a model with a declared input, rejects before it is called: what was wrong, and the fix."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod
from typing import Any

from trainwright.core import Failure, Finding, Fix, Place, Proof, Repair, Role, Safety, Tensors
from trainwright.frameworks.error_texts import DECLARED, INVALID_SHAPE, MODELS, RECURRENT, REFUSED_INPUT
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts


@dataclass(frozen=True)
class RefusedInput:
    """Keras's message about an input that a layer does not accept."""

    layer: str
    axes: int | None
    """The number of axes that it expects; None if that is not the problem."""
    exactly: bool
    shape: tuple[int | None, ...]
    """The shape that it expects, if the message says so."""
    axis: int | None
    size: int
    came: tuple[int | None, ...]

    @property
    def takes(self) -> str:
        if self.axes is not None:
            return f"{'' if self.exactly else 'at least '}{self.axes} dimensions"
        return f"{self.shape}" if self.shape else f"size {self.size} in dimension {self.axis}"

    @property
    def has_other_rank(self) -> bool:
        """Whether the number of axes is wrong, not the size of one."""
        return self.axes is not None or bool(self.shape and len(self.shape) != len(self.came))


def refused_input(setup: SetupFacts, forward: ForwardFacts | None) -> tuple[RefusedInput, Failure] | None:
    """The rejected input, read from the failure of the forward pass or of building the model."""
    failure = forward.failure if forward else setup.failure
    refused = _read(failure) if failure is not None else None
    return (refused, failure) if refused is not None and failure is not None else None


def _read(failure: Failure) -> RefusedInput | None:
    if whole := INVALID_SHAPE.search(failure.message):
        shape, came = (tuple(ast.literal_eval(whole[name])) for name in ("wanted", "came"))
        return RefusedInput(layer="functional", axes=None, exactly=True, shape=shape, axis=None, size=0, came=came)
    said = REFUSED_INPUT.search(failure.message)
    if said is None or said["what"] == "max_ndim":
        return None
    wanted, came = ast.literal_eval(said["wanted"]), ast.literal_eval(said["came"])
    if not isinstance(came, tuple):
        return None
    counted = said["what"].endswith("ndim")
    return RefusedInput(
        layer=said["layer"],
        axes=wanted if counted else None,
        exactly=said["what"] == "ndim",
        shape=wanted if isinstance(wanted, tuple) else (),
        axis=int(said["axis"]) if said["axis"] else None,
        size=wanted if isinstance(wanted, int) else 0,
        came=came,
    )


def refusal(
    refused: RefusedInput, failure: Failure, setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> Finding:
    """The finding for a rejected input."""
    whole = refused.layer.startswith(MODELS)
    name = "the model's Input" if whole else refused.layer
    does, repair = _brought(refused, whole, batch, forward)
    return Finding(
        message=f"{name} expects {refused.takes}, but gets {refused.came}",
        measured={"layer": refused.layer, "declared": refused.takes, "came": str(refused.came)},
        where=_built_at(forward) or (setup.place(Role.MODEL) if whole else None) or failure.where,
        proof=Proof(f"the input was rejected before {'the model' if whole else refused.layer} was called"),
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _built_at(forward: ForwardFacts | None) -> Place | None:
    failed = forward.failed_module if forward else None
    return (failed.size_at or failed.where) if failed else None


def _brought(
    refused: RefusedInput, whole: bool, batch: BatchFacts | None, forward: ForwardFacts | None
) -> tuple[str, Repair | None]:
    """How to give the input the right shape: a description and, if possible, a repair."""
    came, wanted = refused.came[1:], refused.shape[1:]
    given = [k for k, t in batch.tensors.items() if t.shape[1:] == came and k != batch.label_key] if batch else []
    known = [n for n in wanted if n is not None]
    if (
        wanted
        and len(known) == len(wanted)
        and None not in came
        and prod(known) == prod(n for n in came if n is not None)
    ):
        how = f"reshape each row of the inputs to {tuple(known)}"
        return how, _reshape(given[0], tuple(known), how) if given else None
    if refused.axes is not None and refused.axes == len(refused.came) + 1:
        return _with_an_axis(refused, forward), None
    if whole and came:
        return f"declare {DECLARED}({came}), or change the inputs to {wanted or refused.takes}", None
    if refused.axes is not None and len(refused.came) > refused.axes:
        return (f"remove a dimension before {refused.layer}: Flatten, a pooling layer, or return_sequences=False", None)
    return f"change the input of {refused.layer} to {refused.takes}", None


def _with_an_axis(refused: RefusedInput, forward: ForwardFacts | None) -> str:
    """How to add the one axis that is missing."""
    failed = forward.failed_module if forward else None
    called = [m.kind for m in (*(forward.modules if forward else ()), *([failed] if failed else ()))]
    if any(name.startswith(RECURRENT) for name in (refused.layer, *called)):
        return (
            f"set return_sequences=True in a recurrent layer before {refused.layer}, or else add a dimension to its "
            "input: x[..., None]"
        )
    axis = f"add a dimension to the input of {refused.layer}: x[..., None]"
    # If the model is rejected while it is being built, its earlier layers are unknown.
    unknown = forward is None and refused.axes == 3
    return f"{axis}; after a recurrent layer, set return_sequences=True there instead" if unknown else axis


def _reshape(key: str, shape: tuple[int, ...], does: str) -> Repair:
    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        if key not in given:
            return given
        rows = tensors.to_numpy(given[key])
        return {**given, key: tensors.like(rows.reshape(len(rows), *shape), given[key])}

    return change_batches(does, change)
