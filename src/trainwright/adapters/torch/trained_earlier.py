"""Records which parameters a training before the walked one has trained."""

from __future__ import annotations

from typing import Any

from trainwright.seams.listening.seen import seen


def note_trained(optimizer: Any) -> None:
    """Record an optimizer's parameters; of one that has kept something for some of them, only those."""
    groups = getattr(optimizer, "param_groups", ())
    stepped = [p for group in groups for p in group["params"] if p.requires_grad]
    state = getattr(optimizer, "state", {})
    for parameter in [p for p in stepped if p in state] or stepped:
        seen().trained_earlier[parameter] = True
