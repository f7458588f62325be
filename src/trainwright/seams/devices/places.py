"""The devices on which tensors' memory would be, as far as that is certain."""

from __future__ import annotations

import importlib
from typing import Any

GPU, HOST = "cuda:0", "cpu"
# Keep this many entries before dropping those of freed memory.
_SWEPT_AT = 4096


class Storages:
    """A record by storage, which views, detached tensors and parameters share with their source."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, str]] = {}
        self.moved = False
        """Whether a module was moved to the GPU."""
        self.unsure = False
        """Whether tensors may be on the GPU unobserved: through a library, a file, or a default."""

    def put(self, tensor: Any, device: str) -> Any:
        """Record the tensor's device and return the tensor."""
        storage = _storage(tensor)
        if storage is not None:
            if len(self._kept) > _SWEPT_AT:
                self._kept = {k: kept for k, kept in self._kept.items() if not kept[0].expired()}
            weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
            self._kept[storage._cdata] = (weak(storage), device)
        return tensor

    def forget(self, tensor: Any) -> None:
        """Mark a tensor's device as unknown."""
        storage = _storage(tensor)
        if storage is not None:
            self._kept.pop(storage._cdata, None)

    def device(self, tensor: Any) -> str | None:
        """The device where a tensor would be; None if unknown."""
        storage = _storage(tensor)
        kept = self._kept.get(storage._cdata) if storage is not None else None
        return kept[1] if kept is not None and not kept[0].expired() else None

    def on_gpu(self, tensor: Any) -> bool:
        """Whether a tensor would certainly be on the GPU."""
        return self.device(tensor) == GPU


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, meta, or a tracer's tensor
        return None
