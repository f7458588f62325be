"""What a torch training step keeps in memory, and the largest batch that fits, after running out of memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from trainwright.adapters.largest_batch import largest_fitting
from trainwright.adapters.torch.called_model import rows_of, take_rows
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.stages import MemoryFacts
from trainwright.stages.setup import PlannedMemory, planned_memory


def measure_memory(
    model: nn.Module, batch: Mapping[str, Any], step: Callable[[Mapping[str, Any]], None], update: Callable[[], Any]
) -> MemoryFacts:
    """What takes the memory for this batch, found by trying smaller ones.

    Args:
        step: computes the gradients of some rows.
        update: builds the optimizer, makes one update with the current gradients, returns the optimizer.
    """
    rows = rows_of(batch)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    largest = largest_fitting(rows, lambda count: _fits(model, step, take_rows(batch, range(count))))
    activations = optimizer_bytes = 0
    if largest:
        with SavedBytes(model) as saved:
            step(take_rows(batch, range(largest)))
        activations = saved.total * rows // largest
        optimizer_bytes = _state_bytes(update)
    total = torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else 0
    model.zero_grad(set_to_none=True)
    return MemoryFacts(
        device=device.type,
        total_bytes=total,
        weights_bytes=size_of([*model.parameters(), *model.buffers()]),
        gradients_bytes=size_of(p for p in model.parameters() if p.requires_grad),
        optimizer_bytes=optimizer_bytes,
        activations_bytes=activations,
        batch_rows=rows,
        largest_rows=largest or None,
    )


def size_of(tensors: Iterable[torch.Tensor]) -> int:
    """The bytes of the tensors' values."""
    return sum(t.numel() * t.element_size() for t in tensors)


def plan_memory(model: nn.Module, optimizer: Any, name: str = "") -> PlannedMemory:
    """What training will hold in memory whatever the batch is.

    Args:
        name: the framework's name for an optimizer that is not built yet.
    """
    inner = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
    groups = getattr(inner, "param_groups", [])
    return planned_memory(
        size_of([*model.parameters(), *model.buffers()]),
        size_of(p for p in model.parameters() if p.requires_grad),
        type(inner).__name__ if groups else name,
        momentum=any(bool(group.get("momentum")) for group in groups),
    )


def _fits(model: nn.Module, step: Callable[[Mapping[str, Any]], None], rows: Mapping[str, Any]) -> bool:
    try:
        step(rows)
        return True
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        model.zero_grad(set_to_none=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _state_bytes(update: Callable[[], Any]) -> int:
    """Bytes of an optimizer's state after one update; 0 if even that does not fit."""
    try:
        optimizer = update()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return 0
    return size_of(t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor))


class SavedBytes:
    """Counts the bytes that a forward pass keeps for its backward pass, each storage once, without weights."""

    def __init__(self, model: nn.Module) -> None:
        self.total = 0
        self._known = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda kept: kept)

    def __enter__(self) -> SavedBytes:
        self._hooks.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._hooks.__exit__(*exc)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._known:
            self._known.add(storage.data_ptr())
            self.total += storage.nbytes()
        return tensor
