"""The tensors of a sharded training in a checkpoint: each process writes its part, any process reads them whole.

torch.distributed.checkpoint does it, as safetensors files.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed
from torch import Tensor
from torch.distributed import checkpoint as distributed
from torch.distributed.checkpoint.api import CheckpointException

from trainwright.errors import WriteError
from trainwright_lm.atomic import is_seen

_KINDS = ("model/", "optimizer/")


def write(folder: Path, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
    """Write this process's part of the tensors; all processes must call this together.

    Raises:
        WriteError: if any process could not write its part, or wrote it on a disk of its own.
    """
    tensors = {kind + name: one for kind, of in zip(_KINDS, (model, optimizer)) for name, one in of.items()}
    writer = distributed.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        distributed.save(tensors, storage_writer=writer)
    except CheckpointException as error:
        why = next(iter(error.failures.values()))[0]
        raise WriteError(f"{folder} could not be written: {why}. Earlier checkpoints are intact.") from error
    if torch.distributed.get_rank():
        return
    wanted = {name: tensor.numel() for name, tensor in tensors.items()}
    if not is_seen(lambda: _sizes(folder) == wanted):
        raise WriteError(
            f"{folder} must be on a disk that all machines share; if none is, --set run.common_disk=false."
        )


def _sizes(folder: Path) -> dict[str, int]:
    held = distributed.HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    return {name: sum(chunk.sizes.numel() for chunk in about.chunks) for name, about in held.items()}


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The whole tensors of the model and of the optimizer, in this process."""
    reader = distributed.HuggingFaceStorageReader(str(folder))
    held = reader.read_metadata().state_dict_metadata
    tensors = {name: torch.empty(about.size, dtype=about.properties.dtype) for name, about in held.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        distributed.load(tensors, storage_reader=reader, no_dist=True)
    model, optimizer = (
        {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}
        for kind in _KINDS
    )
    return model, optimizer
