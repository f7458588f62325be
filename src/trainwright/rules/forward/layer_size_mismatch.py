"""TW301 layer-size-mismatch: a layer was built for another size than what reaches it.

Why it matters: the forward pass stops, and its message gives two shapes but neither the layer nor its line.
Evidence: the layer's declared size against the shape that came; whether a flatten or a transposition makes it fit.
Error: `mat1 and mat2 shapes cannot be multiplied`
Error: `expected input… to have … channels, but got … channels`
Error: `Given normalized_shape=…, expected input with shape`
Error: `running_mean should contain … elements not`
Error: `input.size(-1) must be equal to input_size`
Error: `is incompatible with the layer: expected axis … to have value`
Error: `is incompatible with the layer: expected shape=`
Error: `Matrix size-incompatible`
Fix (unsafe): give the layer the size that comes, or bring what comes into the layer's shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.forward import ForwardFacts, ModuleFacts

# The argument that sets the size a layer takes, and the axis of its input that must have it.
_TAKES = {
    "Linear": ("in_features", -1), "LSTM": ("input_size", -1), "GRU": ("input_size", -1), "RNN": ("input_size", -1),
    "Conv1d": ("in_channels", 1), "Conv2d": ("in_channels", 1), "Conv3d": ("in_channels", 1),
    "LayerNorm": ("normalized_shape", -1), "BatchNorm1d": ("num_features", 1), "BatchNorm2d": ("num_features", 1),
    "BatchNorm3d": ("num_features", 1), "Dense": ("an input of", -1),
}  # fmt: skip


@rule("TW301", Severity.ERROR)
def layer_size_mismatch(forward: ForwardFacts) -> Iterator[Finding]:
    """A layer that raised, with an input that is not of its size."""
    layer, failure = forward.failed_module, forward.failure
    if failure is None or layer is None or forward.works_at_rows is not None:
        return
    if layer.kind == "Embedding":
        yield from _embedding(layer)
        return
    argument, axis = _TAKES.get(layer.kind, ("", -1))
    shape = layer.inputs[0].shape if layer.inputs else ()
    if not argument or not layer.sizes or len(shape) < 2:
        if "mat1 and mat2 shapes" in failure.message:
            yield Finding(
                message=f"a product in {layer.name or 'the model'} ({layer.kind}) has factors that do not fit: {failure.message}",
                where=failure.where,
                fix=Fix(
                    does="make the last axis of the first factor as long as the first axis of the second"
                ),
            )
        return
    wanted, came = layer.sizes[0], shape[axis] if len(shape) > axis else 0
    if wanted == came:
        return
    does, repair = _fit(layer, shape, argument, wanted, came)
    takes = f"{argument} {wanted}" if layer.kind == "Dense" else f"{argument}={wanted}"
    yield Finding(
        message=f"{layer.name} ({layer.kind}) takes {takes}, and {shape} came: axis {axis % len(shape)} holds {came}",
        measured={"layer": layer.name, "declared": wanted, "came": came, "shape": str(shape)},
        where=layer.where or failure.where,
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _fit(
    layer: ModuleFacts, shape: tuple[int, ...], argument: str, wanted: int, came: int
) -> tuple[str, Repair | None]:
    """What makes it fit, in words and in memory."""
    if layer.kind == "Linear" and len(shape) > 2 and prod(shape[1:]) == wanted:
        return (
            f"flatten what {layer.name} is given, x.flatten(1): then its last axis holds {wanted}",
            _flatten(layer.name),
        )
    other = [i for i, size in enumerate(shape[1:], 1) if size == wanted]
    if other:
        axis = 1 if argument in ("in_channels", "num_features") else len(shape) - 1
        return (
            f"move axis {other[0]} of what {layer.name} is given, which holds {wanted}, to axis {axis}",
            None,
        )
    if layer.kind.startswith("Conv") and wanted == 1 and len(shape) == int(layer.kind[4]) + 1:
        return f"add the axis of the channel to what {layer.name} is given, x.unsqueeze(1)", None
    if layer.kind == "Dense":  # its size is that of the declared input, which its weights were drawn for
        return f"declare an input of {came} values, or give the model {wanted}", None
    return f"build {layer.name} with {argument}={came}, or give it {wanted} values", _resize(layer.name, came)


def _embedding(layer: ModuleFacts) -> Iterator[Finding]:
    """Indices outside an embedding's rows."""
    given = layer.inputs[0] if layer.inputs else None
    if given is None or given.maximum is None or given.minimum is None or not layer.sizes:
        return
    rows, largest, smallest = layer.sizes[0], int(given.maximum), int(given.minimum)
    if smallest >= 0 and largest < rows:
        return
    fits = smallest >= 0
    yield Finding(
        message=f"{layer.name} (Embedding) has {rows} rows, and indices {smallest} to {largest} came; it takes 0 to {rows - 1}",
        measured={"layer": layer.name, "declared": rows, "largest": largest, "smallest": smallest},
        where=layer.where,
        repair=_resize(layer.name, largest + 1) if fits else None,
        fix=Fix(
            does=f"build {layer.name} with num_embeddings={largest + 1} or more" if fits else "number the indices from 0",
            safety=Safety.UNSAFE if fits else Safety.MANUAL,
        ),
    )  # fmt: skip


def _resize(name: str, size: int) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.resize_input(call["model"], name, size)
        return call

    return Repair(f"build {name} for an input of size {size}", Seam.TRAINER, change)


def _flatten(name: str) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.flatten_before(call["model"], name)
        return call

    return Repair(f"flatten what {name} is given", Seam.TRAINER, change)
