"""On which device the memory of tensors would lie, as far as that is sure: the rest is unknown."""

from __future__ import annotations

import importlib
from typing import Any

GPU, HOST = "cuda:0", "cpu"
# So many entries are kept before those of freed memory are dropped.
_SWEPT_AT = 4096


class Storages:
    """A record by storage: views, detached tensors and parameters share that of what they were made of."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, str]] = {}
        self.moved = False
        """A module was moved to the GPU."""
        self.unsure = False
        """Tensors may be there that were not seen to be moved: by a library, by a file, or by default."""

    def put(self, tensor: Any, device: str) -> Any:
        """The tensor, noted to lie there."""
        storage = _storage(tensor)
        if storage is not None:
            if len(self._kept) > _SWEPT_AT:
                self._kept = {k: kept for k, kept in self._kept.items() if not kept[0].expired()}
            weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
            self._kept[storage._cdata] = (weak(storage), device)
        return tensor

    def forget(self, tensor: Any) -> None:
        """Where a tensor would lie is not known any more."""
        storage = _storage(tensor)
        if storage is not None:
            self._kept.pop(storage._cdata, None)

    def device(self, tensor: Any) -> str | None:
        """Where a tensor would lie; None where that is not known."""
        storage = _storage(tensor)
        kept = self._kept.get(storage._cdata) if storage is not None else None
        return kept[1] if kept is not None and not kept[0].expired() else None

    def on_gpu(self, tensor: Any) -> bool:
        """Whether a tensor would be on the GPU for sure."""
        return self.device(tensor) == GPU


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, meta, or a tensor of a tracer
        return None
