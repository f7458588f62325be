"""Records which parameters a training before the walked one has trained, and with which loaders."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch.utils.data import DataLoader

from trainwright.seams.listening.seen import Seen, seen
from trainwright.seams.listening.torch_patches import loader_of
from trainwright.seams.loops.found_loops import Loop


def note_trained(optimizer: Any) -> None:
    """Record an optimizer's parameters; of one that has kept something for some of them, only those."""
    groups = getattr(optimizer, "param_groups", ())
    stepped = [p for group in groups for p in group["params"] if p.requires_grad]
    state = getattr(optimizer, "state", {})
    for parameter in [p for p in stepped if p in state] or stepped:
        seen().trained_earlier[parameter] = True


def note_loaders(loop: Loop) -> None:
    """Record the loaders that a training loop names, or whose iterators it names."""
    for name in {n.id for n in ast.walk(loop.node) if isinstance(n, ast.Name)}:
        value = loop.scope.get(name)
        loader = value if isinstance(value, DataLoader) else loader_of(value)
        if loader is not None:
            seen().trained_earlier[loader] = True


def known_loaders(scope: Mapping[str, Any], known: Seen) -> frozenset[str]:
    """The names of loaders that an earlier training drew from, or that have the data set of one."""
    earlier = [one for one in known.trained_earlier if isinstance(one, DataLoader)]
    loaders = {name: value for name, value in scope.items() if isinstance(value, DataLoader)}
    return frozenset(n for n, v in loaders.items() if any(v is one or v.dataset is one.dataset for one in earlier))
