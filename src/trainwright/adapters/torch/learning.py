"""What learning is measured with in a torch training: fresh batches, rows by their values, and losses by row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from trainwright.adapters.learning.learner import Judged, Passed
from trainwright.adapters.torch.called_model import left_as_it_was
from trainwright.adapters.torch.runs import Look, TorchTraining
from trainwright.probes.information import sketch
from trainwright.seams.listening.seen import quiet
from trainwright.seams.torch.stations import PassRecord
from trainwright.tensors.torch import objects as tensors
from trainwright.timing import now

# A loss that is the value of one call, and not by chance near it.
SAME_VALUE = 1e-6
# Batches that are kept for the steps may take this much memory together, in bytes.
MOST_BYTES = 512 * 2**20


class TorchLearner:
    """What learning is judged by in a torch training."""

    training: TorchTraining

    def digests(self, batch: Any) -> list[int] | None:
        """A hash of each row of a batch; None if it has no rows."""
        return row_digests(batch)

    def passed(self, batch: Any, chosen: frozenset[int] | None) -> Passed | None:
        rows = len(self.digests(batch) or ())
        if not rows:
            return None
        record = PassRecord(self.training.model, rows, sketch, chosen)
        with quiet(), left_as_it_was(self.training.model), record.watching():
            look = self.training.look(batch, by_row=True)
        judged = _judged(look) if look is not None else None
        if judged is None or not record.complete:
            return None
        return Passed(given=record.given, results=record.results, losses=judged.calls)

    def judged(self, batch: Any, *, training: bool = False) -> Judged | None:
        with quiet(), left_as_it_was(self.training.model):
            look = self.training.look(batch, by_row=True, training=training)
        return _judged(look) if look is not None else None


def _judged(look: Look) -> Judged | None:
    """The loss calls that make up a batch's loss; None if one of them is not known row by row."""
    alone = [call for call in look.losses if abs(call.value - look.loss) <= SAME_VALUE * abs(look.loss)]
    known = [call.rows for call in alone[-1:] or look.losses]  # others may be of an evaluation within the step
    return Judged(look.loss, [rows for rows in known if rows is not None]) if known and None not in known else None


def row_digests(values: Any) -> list[int] | None:
    """A hash of each row of the tensors in a batch; None unless all have one first axis, and it is that of rows."""
    found = [t for t in _tensors(values) if t.dim()]
    rows = len(found[0]) if found else 0
    if not rows or any(len(t) != rows or t.layout != torch.strided for t in found):
        return None
    digests = [hashlib.blake2b(digest_size=8) for _ in range(rows)]
    for tensor in found:
        for digest, row in zip(digests, tensors.to_numpy(tensor.detach())):
            digest.update(row.tobytes())
    return [int.from_bytes(d.digest(), "big") for d in digests]


def taken_batches(items: Iterator[Any], most: int, seconds: float) -> list[Any]:
    """Batches until there are enough, the time is over, or they fill the memory set aside for them; at least one."""
    started, taken, filled = now(), list[Any](), 0
    for item in items:
        taken.append(item)
        filled += sum(t.numel() * t.element_size() for t in _tensors(item))
        if len(taken) >= most or filled > MOST_BYTES or now() - started > seconds:
            break
    return taken


def _tensors(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [t for v in values for t in _tensors(v)]
    return []
