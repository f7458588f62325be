"""What one of several processes is about to train with, as hashes to compare with those of the others."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import BuiltObjects, quiet
from trainwright.seams.listening.torch_patches import begun_iterators, loader_of
from trainwright.seams.processes import Position
from trainwright.seams.state.snapshot import RandomState, seed_everything
from trainwright.stages import RankFacts
from trainwright.tensors.items import length, reader_of

# Number of training rows to hash, spread over the set, to detect a different set or order.
HASHED_ROWS = 16
# From each weight tensor, this many values and its sum are hashed.
HASHED_NUMBERS = 64


def loop_rank(frame: FrameType, seen: BuiltObjects, position: Position) -> RankFacts:
    """The facts of a process that makes its first update, by the frame that makes it."""
    loader = drawn_loader()
    weights = [p for optimizer in seen.optimizers for group in optimizer.param_groups for p in group["params"]]
    values = [_held(v) for v in frame.f_locals.values() if not isinstance(v, nn.Module)]
    batch = [v for held in values for v in held if isinstance(v, torch.Tensor) and v.is_leaf and not v.requires_grad]
    kept = RandomState()
    try:
        with quiet():
            return rank_facts(position, loader, batch or None, weights)
    finally:
        kept.put_back()


def drawn_loader() -> Any:
    """The first loader that the script draws from, or None."""
    return next((one for iterator in begun_iterators() if (one := loader_of(iterator)) is not None), None)


def _held(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else (value,)


def trainer_rank(trainer: Any, position: Position) -> RankFacts:
    """The facts of a process that is about to call a Trainer's `train`."""
    kept, loader, batch = RandomState(), None, None
    with quiet(), tolerated():  # unreadable data is reported by a later stage
        loader = trainer.get_train_dataloader()
        batch = next(iter(loader))
    kept.put_back()
    accelerator = trainer.accelerator
    accelerator._dataloaders = [d for d in accelerator._dataloaders if d is not loader]
    with quiet():
        # On start, it sends the first rank's weights to the others, so their values before that do not matter.
        facts = rank_facts(position, loader, batch, [])
    kept.put_back()
    return facts


def rank_facts(position: Position, loader: Any, batch: Any, parameters: Iterable[torch.Tensor]) -> RankFacts:
    """The facts of one process about the data it reads and the parameters it trains."""
    dataset = getattr(loader, "dataset", None)
    weights = _of_weights(parameters)
    return RankFacts(
        rank=position.rank,
        world_size=position.world_size,
        believed=position.believed,
        rows=length(dataset),
        sharded=is_sharded(loader),
        samples=_samples(dataset),
        batch=_hash(batch) if batch is not None else "",
        weights=_hash(weights) if weights else "",
    )


def is_sharded(loader: Any) -> bool:
    """Whether a loader gives each rank its own rows: DistributedSampler and the like, or Accelerate's loaders."""
    batches = getattr(loader, "batch_sampler", None)
    kinds = {k.__name__ for k in type(loader).__mro__}
    if kinds & {"DataLoaderDispatcher"} or type(batches).__name__ == "BatchSamplerShard":
        return True
    samplers = (getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    return any(getattr(s, "num_replicas", 1) not in (None, 1) for s in samplers)


def _samples(dataset: Any) -> str:
    rows = length(dataset)
    if not rows or not hasattr(dataset, "__getitem__"):
        return ""
    found = []
    with tolerated():  # a row that cannot be read is reported by a later stage
        for row in evenly(range(rows), HASHED_ROWS):
            seed_everything(row)  # random augmentation is then the same on each rank
            found.append(_hash(reader_of(dataset)(row)))
    return _hash(found)


@torch.no_grad()
def _of_weights(parameters: Iterable[torch.Tensor]) -> list[Any]:
    return [
        (tuple(p.shape), p.detach().reshape(-1)[:HASHED_NUMBERS].float().cpu(), float(p.detach().double().sum()))
        for p in parameters
        if p.device.type != "meta"
    ]


def _hash(value: Any) -> str:
    found = hashlib.sha256()
    for part in _parts(value):
        found.update(part)
    return found.hexdigest()[:16]


def _parts(value: Any, depth: int = 0) -> Iterable[bytes]:
    """Bytes that depend only on the content, not on the object."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        yield str((value.dtype, tuple(value.shape))).encode()
        yield value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield str((value.dtype, value.shape)).encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping) and depth < 4:
        for key in value:
            yield from itertools.chain([repr(key).encode()], _parts(value[key], depth + 1))
    elif isinstance(value, (list, tuple)) and depth < 4:
        yield str(len(value)).encode()
        for inner in value:
            yield from _parts(inner, depth + 1)
    elif isinstance(value, (str, int, float, bool, bytes, type(None), np.generic)):
        yield repr(value).encode()
    elif hasattr(value, "tobytes"):
        yield value.tobytes()
    else:
        yield type(value).__name__.encode()
