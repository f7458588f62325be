"""A call of the model, or of one of its layers, that raised: what it was given, what it declares, which line built it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Call, Failure, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.wrong_inputs import resize, unfitting_layer, wrong_input
from trainwright.stages import BatchFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW301", Severity.ERROR, foretells=Fate.STOPS)
def layer_size_mismatch(setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None) -> Iterator[Finding]:
    """A layer that raised because its input has a different size."""
    found = wrong_input(setup, forward, batch)
    if found is not None and not found.has_other_rank:
        yield found.finding


@rule("TW320", Severity.ERROR, after="TW301")
def wrong_number_of_axes(
    setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> Iterator[Finding]:
    """A layer that raised or rejected its input because of a missing or surplus dimension."""
    found = wrong_input(setup, forward, batch)
    if found is not None and found.has_other_rank:
        yield found.finding


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
        repair=resize(layer.name, largest + 1) if fits and not layer.fixed_size else None,
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
    if forward.failure is None or forward.works_at_rows is None or unfitting_layer(forward) is not None:
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
