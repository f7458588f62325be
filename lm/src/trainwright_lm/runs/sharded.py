"""The tensors of a sharded training in a checkpoint: each process writes its part; any number of processes reads them.

torch.distributed.checkpoint does it, as safetensors files. A single process reads whole tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch import Tensor
from torch.distributed import checkpoint as distributed
from torch.distributed.checkpoint.api import CheckpointException

from trainwright.errors import WriteError

_MODEL, _OPTIMIZER = "model/", "optimizer/"


def write(folder: Path, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
    """Write this process's part of the tensors; all processes must call this together.

    Raises:
        WriteError: if any process could not write its part, or wrote it on a disk of its own.
    """
    tensors, reader = _together(model, optimizer), distributed.HuggingFaceStorageReader(str(folder))
    writer = distributed.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        distributed.save(tensors, storage_writer=writer)
    except CheckpointException as error:
        why = next(iter(error.failures.values()))[0]
        raise WriteError(f"{folder} could not be written: {why}. Earlier checkpoints are intact.") from error
    if torch.distributed.get_rank():
        return
    sizes = {name: sum(c.sizes.numel() for c in about.chunks) for name, about in _described(reader).items()}
    if sizes != {name: tensor.numel() for name, tensor in tensors.items()}:
        raise WriteError(f"{folder} must be on a disk that all machines share; if none is, --set run.common_disk=false.")


def read_into(folder: Path, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
    """Fill tensors, of which each process has its part, in place; all processes must call this together."""
    distributed.load(_together(model, optimizer), storage_reader=distributed.HuggingFaceStorageReader(str(folder)))


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The whole tensors of the model and of the optimizer, in this process alone."""
    reader = distributed.HuggingFaceStorageReader(str(folder))
    tensors = {name: torch.empty(of.size, dtype=of.properties.dtype) for name, of in _described(reader).items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        distributed.load(tensors, storage_reader=reader, no_dist=True)
    model, optimizer = (
        {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}
        for kind in (_MODEL, _OPTIMIZER)
    )
    return model, optimizer


def _together(model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> dict[str, Tensor]:
    named = ((_MODEL, model), (_OPTIMIZER, optimizer))
    return {f"{kind}{name}": tensor for kind, tensors in named for name, tensor in tensors.items()}


def _described(reader: distributed.HuggingFaceStorageReader) -> dict[str, Any]:
    described: dict[str, Any] = reader.read_metadata().state_dict_metadata
    return described
