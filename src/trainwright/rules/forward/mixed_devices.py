"""TW319 mixed-devices: one step needs tensors on two devices.

Why it matters: The step raises an error on its first batch; the message names an argument of a kernel, but no tensor of
the script.
Evidence: The error of the step, on a GPU or with the CPU standing in for one, and the two devices in it.
Error: `Expected all tensors to be on the same device, but found at least two devices`
Error: `Expected all tensors to be on the same device, but got`
Error: `is not on the expected device`
Error: `tensors are not at the same device, found input tensor at`
Error: `Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same`
Fix (safe): Move the model once, and each tensor of the batch in the step, to the same device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Failure, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts

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
        fix=Fix(
            does="move the model once before the loop, and inputs and targets in each step, to the same device: "
            "model.to(device), inputs.to(device), targets.to(device)",
            safety=Safety.SAFE,
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
