"""How much memory the graphs of a model's calls take while the script keeps them alive."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any

import torch


class _Saved:
    """A tensor that a graph saves for its backward pass; it lives as long as the graph."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class KeptGraphs:
    """Counts what graphs save, by the owner that is active when they are created.

    Args:
        owner: returns the active owner; None: do not count.
    """

    def __init__(self, owner: Callable[[], Hashable | None]) -> None:
        self._owner = owner
        self._saved: dict[Any, list[weakref.ref[_Saved]]] = defaultdict(list)

    def counting(self) -> Any:
        """A context in which graphs are counted."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def bytes_of(self, owner: Hashable) -> int:
        """The bytes that an owner's graphs hold now; each tensor once, without parameters."""
        alive = [s.tensor for reference in self._saved.get(owner, []) if (s := reference()) is not None]
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in alive}.values())

    def _pack(self, tensor: torch.Tensor) -> _Saved:
        # An operation that saves its own result forms a cycle with it: wrapped as it is, the two would never be freed.
        saved = _Saved(tensor.detach())
        owner = self._owner()
        if owner is not None and not (tensor.is_leaf and tensor.requires_grad):
            self._saved[owner].append(weakref.ref(saved))
        return saved

    @staticmethod
    def _unpack(saved: _Saved) -> torch.Tensor:
        return saved.tensor
