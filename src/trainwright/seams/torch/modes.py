"""Modes that see torch's calls around real updates: nothing of the script's objects is replaced."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def original(func: Any) -> Any:
    """The function itself, where a watcher of the run stands in its place."""
    return func if func is torch.Tensor.backward else getattr(func, "__wrapped__", func)


class Leaving(TorchFunctionMode):
    """A mode that can be left while another of the script's lies over it: it stays there without effect."""

    is_passive = False
    _hooks: list[Any]

    def retire(self) -> None:
        """Have no effect from now on."""
        self.is_passive = True
        for hook in self._hooks:
            hook.remove()
