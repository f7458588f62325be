"""A layer, or a whole model, that raised for the shape of its input: what it declares, what it was given, and what makes it fit."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod
from typing import Any

from trainwright.core import Finding, Fix, Proof, Repair, Role, Safety, Tensors
from trainwright.frameworks.error_texts import DECLARED, INVALID_SHAPE, MODELS, RECURRENT, REFUSED_INPUT, TAKES
from trainwright.rules.repairs import change_batches, on_model
from trainwright.stages import BatchFacts, ForwardFacts, ModuleFacts, SetupFacts


@dataclass(frozen=True, kw_only=True)
class WrongInput:
    """What is to be said of such a call."""

    has_other_rank: bool
    """Whether the number of axes is wrong, not the size of one."""
    finding: Finding


def wrong_input(setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None) -> WrongInput | None:
    """The call that raised, as the message tells it, or else as its input and declared size show it."""
    failure = forward.failure if forward else setup.failure
    refusal = _read(failure.message) if failure is not None else None
    if refusal is not None:
        return _refused(refusal, setup, forward, batch)
    return unfitting_layer(forward) if forward is not None else None


def unfitting_layer(forward: ForwardFacts) -> WrongInput | None:
    """A layer with a declared size that raised on an input of another size."""
    layer, failure = forward.failed_module, forward.failure
    argument, axis = TAKES.get(layer.kind, ("", -1)) if layer is not None else ("", -1)
    shape = layer.inputs[0].shape if layer is not None and layer.inputs else ()
    if layer is None or failure is None or not argument or not layer.sizes or not shape:
        return None
    wanted, came = layer.sizes[0], shape[axis] if len(shape) > axis else 0
    is_single = argument == "in_features" and wanted == len(shape) == 1  # of which a single row fits by chance
    if wanted == came or (not is_single and (len(shape) < 2 or forward.works_at_rows is not None)):
        return None
    added = _add_axes(layer, argument, shape)
    does, repair = added or _change_size(layer, argument, shape, came)
    takes = f"{argument} {wanted}" if layer.fixed_size else f"{argument}={wanted}"
    finding = Finding(
        message=f"{layer.name} ({layer.kind}) expects {takes}, but its input has shape {shape}, "
        f"with size {came} in dimension {axis % len(shape)}",
        measured={"layer": layer.name, "declared": wanted, "came": came, "shape": str(shape)},
        where=(failure.where if is_single else None) or layer.where or failure.where,
        repair=repair,
        fix=_fix(does, repair),
    )
    return WrongInput(has_other_rank=added is not None, finding=finding)


def _fix(does: str, repair: Repair | None) -> Fix:
    return Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL)


def _add_axes(layer: ModuleFacts, argument: str, shape: tuple[int, ...]) -> tuple[str, Repair | None] | None:
    """What gives the input the layer's number of axes, with a repair where there is one; None if that is not wrong."""
    name, wanted = layer.name, layer.sizes[0]
    if argument == "in_features" and len(shape) > 2 and prod(shape[1:]) == wanted:
        return f"flatten the input of {name} to {wanted} values per row: x.flatten(1)", on_model(
            f"flatten the input of {name}", lambda tensors, model: tensors.flatten_before(model, name)
        )
    if argument == "in_features" and wanted == len(shape) == 1:
        return f"add a dimension for its one feature to the input of {name}: x.unsqueeze(1)", None
    is_flat = argument == "in_channels" and len(shape) == int(layer.kind.removeprefix("Conv")[0]) + 1
    if is_flat and wanted == 1 and wanted not in shape[1:]:
        return f"add a channel dimension to the input of {name}: x.unsqueeze(1)", None
    return None


def _change_size(layer: ModuleFacts, argument: str, shape: tuple[int, ...], came: int) -> tuple[str, Repair | None]:
    """What makes the sizes agree, with a repair where there is one."""
    name, wanted = layer.name, layer.sizes[0]
    other = [i for i, size in enumerate(shape[1:], 1) if size == wanted]
    if other:
        axis = 1 if argument in ("in_channels", "num_features") else len(shape) - 1
        return f"move dimension {other[0]} of {name}'s input, which has size {wanted}, to dimension {axis}", None
    if layer.fixed_size:  # its size is that of the declared input, which its weights were drawn for
        return f"declare an input of {came} values, or pass inputs of {wanted} values", None
    return f"build {name} with {argument}={came}, or pass it {wanted} values", resize(name, came)


def resize(name: str, size: int) -> Repair:
    """Rebuild a layer for another input size."""
    return on_model(
        f"build {name} for an input of size {size}", lambda tensors, model: tensors.resize_input(model, name, size)
    )


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    """Keras's message about an input that a layer, or a model with a declared input, does not accept."""

    layer: str
    takes: str
    came: tuple[int | None, ...]
    axes: int | None = None
    """The number of axes that it expects; None if that is not the problem."""
    shape: tuple[int | None, ...] = ()
    """The shape that it expects, if the message says so."""


def _read(message: str) -> _Refusal | None:
    if whole := INVALID_SHAPE.search(message):
        shape, came = (tuple(ast.literal_eval(whole[name])) for name in ("wanted", "came"))
        return _Refusal(layer="functional", takes=f"{shape}", came=came, shape=shape)
    said = REFUSED_INPUT.search(message)
    if said is None or said["what"] == "max_ndim":
        return None
    layer, wanted, came = said["layer"], ast.literal_eval(said["wanted"]), ast.literal_eval(said["came"])
    if not isinstance(came, tuple):
        return None
    if said["axis"]:
        return _Refusal(layer=layer, takes=f"size {wanted} in dimension {said['axis']}", came=came)
    if said["what"] == "shape":
        return _Refusal(layer=layer, takes=f"{wanted}", came=came, shape=wanted)
    least = "at least " if said["what"] == "min_ndim" else ""
    return _Refusal(layer=layer, takes=f"{least}{wanted} dimensions", came=came, axes=wanted)


def _refused(
    refusal: _Refusal, setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> WrongInput:
    layer, whole = refusal.layer, refusal.layer.startswith(MODELS)
    does, repair = _bring(refusal, whole, batch, forward)
    failure, failed = (forward.failure, forward.failed_module) if forward else (setup.failure, None)
    built_at = (failed.size_at or failed.where) if failed else None
    name = "the model's Input" if whole else layer
    finding = Finding(
        message=f"{name} expects {refusal.takes}, but gets {refusal.came}",
        measured={"layer": layer, "declared": refusal.takes, "came": str(refusal.came)},
        where=built_at or (setup.place(Role.MODEL) if whole else None) or (failure.where if failure else None),
        proof=Proof(f"the input was rejected before {'the model' if whole else layer} was called"),
        repair=repair,
        fix=_fix(does, repair),
    )
    other_rank = refusal.axes is not None or bool(refusal.shape and len(refusal.shape) != len(refusal.came))
    return WrongInput(has_other_rank=other_rank, finding=finding)


def _bring(
    refusal: _Refusal, whole: bool, batch: BatchFacts | None, forward: ForwardFacts | None
) -> tuple[str, Repair | None]:
    """What gives the input the right shape, with a repair where there is one."""
    came, wanted, axes = refusal.came[1:], refusal.shape[1:], refusal.axes
    sizes, given = [n for n in wanted if n is not None], [n for n in came if n is not None]
    if wanted and len(sizes) == len(wanted) and len(given) == len(came) and prod(sizes) == prod(given):
        how = f"reshape each row of the inputs to {tuple(sizes)}"
        keys = [k for k, t in batch.tensors.items() if t.shape[1:] == came and k != batch.label_key] if batch else []
        return how, _reshape(keys[0], tuple(sizes), how) if keys else None
    if axes is not None and axes == len(refusal.came) + 1:
        return _with_an_axis(refusal, forward), None
    if whole and came:
        return f"declare {DECLARED}({came}), or change the inputs to {wanted or refusal.takes}", None
    if axes is not None and len(refusal.came) > axes:
        return f"remove a dimension before {refusal.layer}: Flatten, a pooling layer, or return_sequences=False", None
    return f"change the input of {refusal.layer} to {refusal.takes}", None


def _with_an_axis(refusal: _Refusal, forward: ForwardFacts | None) -> str:
    """How to add the one axis that is missing."""
    failed = forward.failed_module if forward else None
    called = [m.kind for m in (*(forward.modules if forward else ()), *([failed] if failed else ()))]
    if any(name.startswith(RECURRENT) for name in (refusal.layer, *called)):
        return (
            f"set return_sequences=True in a recurrent layer before {refusal.layer}, or else add a dimension to its "
            "input: x[..., None]"
        )
    axis = f"add a dimension to the input of {refusal.layer}: x[..., None]"
    # If the model is rejected while it is being built, its earlier layers are unknown.
    unknown = forward is None and refusal.axes == 3
    return f"{axis}; after a recurrent layer, set return_sequences=True there instead" if unknown else axis


def _reshape(key: str, shape: tuple[int, ...], does: str) -> Repair:
    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        if key not in given:
            return given
        rows = tensors.to_numpy(given[key])
        return {**given, key: tensors.like(rows.reshape(len(rows), *shape), given[key])}

    return change_batches(does, change)
