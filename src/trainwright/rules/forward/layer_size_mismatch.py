"""TW301 layer-size-mismatch: a layer was built for a different size than its input has.

Why it matters: the forward pass stops, and its message gives two shapes but neither the layer nor its line.
Evidence: the layer's declared size against the shape that came; whether a flatten or a transposition makes it fit.
Error: `mat1 and mat2 shapes cannot be multiplied`
Error: `expected input… to have … channels, but got … channels`
Error: `Given normalized_shape=…, expected input with shape`
Error: `running_mean should contain … elements not`
Error: `input.size(-1) must be equal to input_size`
Error: `is incompatible with the layer: expected`
Error: `Matrix size-incompatible`
Fix (unsafe): give the layer the size that comes, or bring what comes into the layer's shape.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from trainwright.core.finding import Failure, Finding, Place, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.core.tensors import Tensors
from trainwright.rules.repairs import change_batches
from trainwright.stages.batch import BatchFacts
from trainwright.stages.forward import ForwardFacts, ModuleFacts
from trainwright.stages.setup import SetupFacts

# The argument that sets the size a layer takes, and the axis of its input that must have it.
_TAKES = {
    "Linear": ("in_features", -1), "LSTM": ("input_size", -1), "GRU": ("input_size", -1), "RNN": ("input_size", -1),
    "Conv1d": ("in_channels", 1), "Conv2d": ("in_channels", 1), "Conv3d": ("in_channels", 1),
    "LayerNorm": ("normalized_shape", -1), "BatchNorm1d": ("num_features", 1), "BatchNorm2d": ("num_features", 1),
    "BatchNorm3d": ("num_features", 1), "Dense": ("an input of", -1),
}  # fmt: skip


# How Keras refuses a layer's or a model's input (keras/src/layers/input_spec.py).
_REFUSED = re.compile(
    r"Input \d+(?: with name '(?P<input>[^']*)')? of layer ['\"](?P<layer>[^'\"]+)['\"] is incompatible with the layer: "
    r"expected (?P<what>ndim|min_ndim|max_ndim|shape|axis (?P<axis>-?\d+) of input shape to have value)[= ]"
    r"(?P<wanted>\([^)]*\)|-?\d+),? (?:found|but received input with) "
    r"(?:ndim=\d+\. Full shape received: |shape[= ]|ndim=)(?P<came>\([^)]*\)|\d+)"
)
# The same of a model whose declared Input has another number of axes (keras/src/models/functional.py).
_INVALID = re.compile(
    r"Invalid input shape for input .*?with name '(?P<layer>[^']*)'.*?[Ee]xpected shape (?P<wanted>\([^)]*\)), "
    r"but input has incompatible shape (?:torch\.Size\()?(?P<came>[(\[][^)\]]*[)\]])",
    re.DOTALL,
)
_MODELS = ("functional", "sequential")
# Keras's recurrent layers, by their classes and by the names that they get of themselves.
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM", "Bidirectional",
              "lstm", "gru", "simple_rnn", "rnn", "conv_lstm", "bidirectional")  # fmt: skip


@rule("TW301", Severity.ERROR)
def layer_size_mismatch(
    setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> Iterator[Finding]:
    """A layer that raised, with an input that is not of its size."""
    failure = forward.failure if forward else setup.failure
    if failure is not None and (refused := _refused(failure)):
        yield _declared(refused, failure, setup, forward, batch)
        return
    if forward is not None:
        yield from _of_size(forward, setup)


@dataclass(frozen=True)
class _Refused:
    """What Keras said of an input that a layer does not take."""

    layer: str
    axes: int | None
    """How many it takes; None: that is not what is wrong."""
    exactly: bool
    shape: tuple[int | None, ...]
    """The shape that it takes, where that was told."""
    axis: int | None
    size: int
    came: tuple[int | None, ...]

    @property
    def takes(self) -> str:
        if self.axes is not None:
            return f"{'' if self.exactly else 'at least '}{self.axes} axes"
        return f"{self.shape}" if self.shape else f"{self.size} values on axis {self.axis}"


def _refused(failure: Failure) -> _Refused | None:
    if whole := _INVALID.search(failure.message):
        shape, came = (tuple(ast.literal_eval(whole[name])) for name in ("wanted", "came"))
        return _Refused(
            layer="functional", axes=None, exactly=True, shape=shape, axis=None, size=0, came=came
        )
    said = _REFUSED.search(failure.message)
    if said is None or said["what"] == "max_ndim":
        return None
    wanted, came = ast.literal_eval(said["wanted"]), ast.literal_eval(said["came"])
    if not isinstance(came, tuple):
        return None
    counted = said["what"].endswith("ndim")
    return _Refused(
        layer=said["layer"],
        axes=wanted if counted else None,
        exactly=said["what"] == "ndim",
        shape=wanted if isinstance(wanted, tuple) else (),
        axis=int(said["axis"]) if said["axis"] else None,
        size=wanted if isinstance(wanted, int) else 0,
        came=came,
    )


def _declared(
    refused: _Refused,
    failure: Failure,
    setup: SetupFacts,
    forward: ForwardFacts | None,
    batch: BatchFacts | None,
) -> Finding:
    """An input that a Keras layer, or the model by its declared Input, does not take."""
    whole = refused.layer.startswith(_MODELS)
    name = "the model's Input" if whole else refused.layer
    does, repair = _brought(refused, whole, batch, forward)
    return Finding(
        message=f"{name} takes {refused.takes}, and {refused.came} came",
        measured={"layer": refused.layer, "declared": refused.takes, "came": str(refused.came)},
        where=_built_at(refused, forward) or (setup.place(Role.MODEL) if whole else None) or failure.where,
        proof=Proof(
            f"Keras compared the two before it called {'the model' if whole else refused.layer}, and refused"
        ),
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _built_at(refused: _Refused, forward: ForwardFacts | None) -> Place | None:
    failed = forward.failed_module if forward else None
    return (failed.size_at or failed.where) if failed else None


def _brought(
    refused: _Refused, whole: bool, batch: BatchFacts | None, forward: ForwardFacts | None
) -> tuple[str, Repair | None]:
    """What brings the input into shape, in words and in memory."""
    came, wanted = refused.came[1:], refused.shape[1:]
    given = (
        [k for k, t in batch.tensors.items() if t.shape[1:] == came and k != batch.label_key] if batch else []
    )
    known = [n for n in wanted if n is not None]
    if (
        wanted
        and len(known) == len(wanted)
        and None not in came
        and prod(known) == prod(n for n in came if n is not None)
    ):
        how = f"reshape the inputs to {tuple(known)} a row"
        return how, _reshape(given[0], tuple(known), how) if given else None
    if refused.axes is not None and refused.axes == len(refused.came) + 1:
        return _with_an_axis(refused, forward), None
    if whole and came:
        return f"declare keras.Input({came}), or give the model {wanted or refused.takes}", None
    if refused.axes is not None and len(refused.came) > refused.axes:
        return (
            f"take an axis away before {refused.layer}: Flatten, a pooling layer, or return_sequences=False",
            None,
        )
    return f"bring what {refused.layer} is given to {refused.takes}", None


def _with_an_axis(refused: _Refused, forward: ForwardFacts | None) -> str:
    """What gives a layer the one axis that is missing."""
    failed = forward.failed_module if forward else None
    called = [m.kind for m in (*(forward.modules if forward else ()), *([failed] if failed else ()))]
    if any(name.startswith(_RECURRENT) for name in (refused.layer, *called)):
        return (
            f"give a recurrent layer before {refused.layer} return_sequences=True; else add an axis to what it is given: "
            "x[..., None]"
        )
    axis = f"add an axis to what {refused.layer} is given: x[..., None]"
    # Of a model that is refused while it is built, the layers before are not known.
    unknown = forward is None and refused.axes == 3
    return f"{axis}; behind a recurrent layer, give that one return_sequences=True" if unknown else axis


def _reshape(key: str, shape: tuple[int, ...], does: str) -> Repair:
    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        if key not in given:
            return given
        rows = tensors.to_numpy(given[key])
        return {**given, key: tensors.like(rows.reshape(len(rows), *shape), given[key])}

    return change_batches(does, change)


def _of_size(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A layer of torch's, or of Keras's that raised on the way."""
    layer, failure = forward.failed_module, forward.failure
    if failure is None or layer is None or forward.works_at_rows is not None:
        return
    if layer.kind == "Embedding":
        yield from _embedding(layer, in_keras=setup.framework == "keras")
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


def _embedding(layer: ModuleFacts, *, in_keras: bool) -> Iterator[Finding]:
    """Indices outside an embedding's rows; Keras's layers take no other size once they are built."""
    given = layer.inputs[0] if layer.inputs else None
    if given is None or given.maximum is None or given.minimum is None or not layer.sizes:
        return
    rows, largest, smallest = layer.sizes[0], int(given.maximum), int(given.minimum)
    if smallest >= 0 and largest < rows:
        return
    fits, argument = smallest >= 0, "input_dim" if in_keras else "num_embeddings"
    yield Finding(
        message=f"{layer.name} (Embedding) has {rows} rows, and indices {smallest} to {largest} came; it takes 0 to {rows - 1}",
        measured={"layer": layer.name, "declared": rows, "largest": largest, "smallest": smallest},
        where=layer.where,
        repair=_resize(layer.name, largest + 1) if fits and not in_keras else None,
        fix=Fix(
            does=f"build {layer.name} with {argument}={largest + 1} or more"
            if fits
            else "number the indices from 0",
            safety=Safety.UNSAFE if fits else Safety.MANUAL,
        ),
    )


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
