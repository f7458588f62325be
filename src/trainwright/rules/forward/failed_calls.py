"""A call of the model, or of one of its layers, that raised: what it was given, what it declares, and what makes it fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from trainwright.core import (
    Call,
    Failure,
    Fate,
    Finding,
    Fix,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Tensors,
    rule,
)
from trainwright.frameworks.error_texts import DECLARED, INVALID_SHAPE, MODELS, RECURRENT, REFUSED_INPUT, TAKES
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import change_batches, on_model
from trainwright.stages import BatchFacts, ForwardFacts, LossFacts, ModuleFacts, SetupFacts


@rule("TW301", Severity.ERROR, foretells=Fate.STOPS)
def layer_size_mismatch(setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None) -> Iterator[Finding]:
    """A layer that raised because its input has a different size."""
    found = _wrong_input(setup, forward, batch)
    if found is not None and not found.has_other_rank:
        yield found.finding


@rule("TW320", Severity.ERROR, after="TW301")
def wrong_number_of_axes(
    setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> Iterator[Finding]:
    """A layer that raised or rejected its input because of a missing or surplus dimension."""
    found = _wrong_input(setup, forward, batch)
    if found is not None and found.has_other_rank:
        yield found.finding


@dataclass(frozen=True, kw_only=True)
class WrongInput:
    """What is to be said of such a call."""

    has_other_rank: bool
    """Whether the number of axes is wrong, not the size of one."""
    finding: Finding


def _wrong_input(setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None) -> WrongInput | None:
    """The call that raised, as the message tells it, or else as its input and declared size show it."""
    failure = forward.failure if forward else setup.failure
    refusal = _read(failure.message) if failure is not None else None
    if refusal is not None:
        return _refused(refusal, setup, forward, batch)
    return _unfitting_layer(forward) if forward is not None else None


def _unfitting_layer(forward: ForwardFacts) -> WrongInput | None:
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
    return f"build {name} with {argument}={came}, or pass it {wanted} values", _resize(name, came)


def _resize(name: str, size: int) -> Repair:
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


@rule("TW321", Severity.ERROR, after="TW301", foretells=Fate.STOPS)
def index_beyond_embedding(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An embedding that raised."""
    layer = forward.failed_module
    if layer is None or layer.kind != "Embedding":
        return
    given = layer.inputs[0] if layer.inputs else None
    if given is None or given.maximum is None or given.minimum is None or not layer.sizes:
        return
    rows, largest, smallest = layer.sizes[0], int(given.maximum), int(given.minimum)
    if smallest >= 0 and largest < rows:
        return
    fits = smallest >= 0
    yield Finding(
        message=f"{layer.name} (Embedding) has {rows} rows, for indices 0 to {rows - 1}, but gets indices {smallest} "
        f"to {largest}",
        measured={"layer": layer.name, "declared": rows, "largest": largest, "smallest": smallest},
        where=layer.where,
        repair=_resize(layer.name, largest + 1) if fits and not layer.fixed_size else None,
        fix=Fix(
            does=f"build {layer.name} with {setup.words.embedding_rows}={largest + 1} or more"
            if fits
            else "number the indices from 0",
            safety=Safety.UNSAFE if fits else Safety.MANUAL,
        ),
    )


@rule("TW302", Severity.ERROR)
def fixed_batch_size(forward: ForwardFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A forward pass that raises for a batch size still to come, or only for the first batch's size."""
    failure = forward.other_rows_failure
    if failure is not None and forward.fails_at_rows is not None:
        rows, alone = (forward.fails_at_rows, forward.fails_at_rows == 1 and "more than 1 value" in failure.message)
        yield Finding(
            message=f"the model works with {batch.rows} rows but fails with {rows}, the size of {forward.other_rows_from}: {failure}",
            measured={"works_with_rows": batch.rows, "fails_with_rows": rows, "batch": forward.other_rows_from},
            where=setup.place(Role.ARGUMENTS) if alone else forward.fixed_at or setup.place(Role.MODEL),
            proof=Proof(f"called with {rows} rows it raises {failure.type}"),
            repair=Repair("drop incomplete batches", Seam.TRAINER, _drop_last),
            fix=unsafe(
                f"drop incomplete batches ({setup.words.drop_last}): batch statistics need two rows"
                if alone
                else f"take the batch size from the input instead of {batch.rows}, or drop incomplete batches"
            ),
        )
        return
    if forward.failure is None or forward.works_at_rows is None or _unfitting_layer(forward) is not None:
        return
    if forward.failure.where is not None:
        yield Finding(
            message=f"the model fails with the {batch.rows} rows of a batch but works with {forward.works_at_rows}: {forward.failure}",
            measured={"works_with_rows": forward.works_at_rows, "fails_with_rows": batch.rows},
            where=forward.failure.where or setup.place(Role.MODEL),
            proof=Proof(f"called with {forward.works_at_rows} rows it works"),
            fix=Fix(does="take the number of rows from the input, x.size(0), instead of a fixed number"),
        )


def _drop_last(call: Call) -> Call:
    arguments = call["arguments"]
    object.__setattr__(arguments, "dataloader_drop_last", True)
    if hasattr(arguments, "per_device_train_batch_size"):
        object.__setattr__(arguments, "per_device_eval_batch_size", arguments.per_device_train_batch_size)
    return call


_NAMED = re.compile(
    r"same device, but found at least two devices, (?P<one>[\w:]+) and (?P<other>[\w:]+)!(?: \((?P<which>.*?)\))?"
)
# Meta tensors' shape functions; torch since 2.8, which names the argument; recurrent layers; an index.
_OTHERS = (
    re.compile(r"Tensor on device (?P<one>[\w:]+) is not on the expected device (?P<other>[\w:]+)!"),
    re.compile(
        r"same device, but got (?P<which>\w+) is on (?P<one>[\w:]+), different from other tensors on (?P<other>[\w:]+)"
    ),
    re.compile(r"found input tensor at (?P<one>[\w:]+) and (?P<which>\w+) tensor at (?P<other>[\w:]+)"),
)
_WITHOUT_VALUES = "the meta device keeps shapes and no values"
_OF_META = ("on meta tensors", "from a meta tensor", "out of meta tensor")
_TYPES = re.compile(r"Input type \(\w+\.(?P<one>\w+\.)?\w+\) and weight type \(\w+\.(?P<other>\w+\.)?\w+\)")


@rule("TW319", Severity.ERROR)
def mixed_devices(forward: ForwardFacts, loss: LossFacts | None, setup: SetupFacts) -> Iterator[Finding]:
    """A forward pass or loss that raised because its tensors are on different devices."""
    failure = (loss.failure if loss else None) or forward.failure
    devices = _devices(failure)
    if failure is None or devices is None:
        return
    one, other, which = devices
    yield Finding(
        message=f"the step needs tensors on {one} and on {other} at once{which}",
        measured={"devices": f"{one}, {other}"},
        where=failure.where or setup.place(Role.TRAIN_STEP, Role.MODEL),
        proof=Proof(f"the step raised {failure.type}: {failure.message.splitlines()[0]}"[:300]),
        fix=safe(
            "move the model once before the loop, and inputs and targets in each step, to the same device: "
            "model.to(device), inputs.to(device), targets.to(device)"
        ),
    )


def _devices(failure: Failure | None) -> tuple[str, str, str] | None:
    """The two devices in the message, and the tensors it names."""
    if failure is None:
        return None
    if found := _NAMED.search(failure.message):
        which = found["which"] or ""
        return found["one"], found["other"], f" ({which})" if which else ""
    if any(text in failure.message for text in _OF_META):
        return "meta", "cpu", f" ({_WITHOUT_VALUES})"
    for pattern in _OTHERS:
        if found := pattern.search(failure.message):
            one, other = found["one"], found["other"]
            which = _WITHOUT_VALUES if "meta" in (one, other) else found.groupdict().get("which")
            return one, other, f" ({which})" if which else ""
    found = _TYPES.search(failure.message)
    kinds = [(found[name] or "cpu").rstrip(".") for name in ("one", "other")] if found else []
    return (kinds[0], kinds[1], " (the input and the weight)") if len(set(kinds)) == 2 else None
