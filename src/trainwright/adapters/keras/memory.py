"""What a Keras training step keeps in memory, and the largest batch that fits, after running out of memory."""

from __future__ import annotations

import gc
import math
import re
import sys
from collections.abc import Iterable
from typing import Any

from trainwright.adapters.keras.calls import catching
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.training import FitTraining
from trainwright.adapters.largest_batch import largest_fitting
from trainwright.seams.devices.memory_owners import accelerators, is_out_of_memory
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.keras.step_record import StepRecord
from trainwright.stages import MemoryFacts
from trainwright.tensors.keras import objects as tensors


def measure_memory(fit: FitTraining, batch: FitBatch) -> MemoryFacts:
    """What takes the memory for this batch, found by trying smaller ones; the weights are restored.

    Raises:
        Exception: what a smaller batch raised other than running out of memory.
    """
    rows, model = batch.rows, fit.model
    largest = largest_fitting(rows, lambda count: _fits(fit, _cut(batch, count)))
    activations = _activation_bytes(fit, _cut(batch, largest)) * rows // largest if largest else 0
    weights = list(model.variables)
    device = fit.backend.device(weights[0]) if weights else "cpu"
    return MemoryFacts(
        device=device,
        total_bytes=max((gpu.total_bytes for gpu in accelerators(device)), default=0),
        weights_bytes=_size(weights),
        gradients_bytes=_size(model.trainable_variables),
        optimizer_bytes=_size(model.optimizer.variables) if model.optimizer is not None else 0,
        activations_bytes=activations,
        activations_at_least=True,
        batch_rows=rows,
        largest_rows=largest or None,
    )


def _cut(batch: FitBatch, rows: int) -> FitBatch:
    return batch.renewed(tensors.take_rows(batch.view(), rows))


def _fits(fit: FitTraining, batch: FitBatch) -> bool:
    """Whether a step with its update succeeds."""
    with tolerated():  # the step raises it again
        fit.build(batch)
    fit.reset()
    record = fit.step_gradients(batch, fit.observer(detail=False))
    if record.failure is None and record.gradients is not None and fit.model.optimizer is not None:
        with catching(record):
            fit.update(record.gradients, record.trained)
    error, record = record.error, StepRecord()
    fit.reset()
    if error is not None and not is_out_of_memory(error):
        raise error
    if error is None:
        return True
    del error
    gc.collect()  # the exception's frames hold the step's tensors
    torch = sys.modules.get("torch") if fit.backend.name == "torch" else None
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False


def _activation_bytes(fit: FitTraining, batch: FitBatch) -> int:
    """Bytes of the layers' outputs, the least that a step keeps for its backward pass; 0: unknown."""
    if fit.own_step:
        return 0
    observer = fit.observer(detail=True)
    with observer, catching(observer.record):
        fit.compute(fit.tensors_of(batch), observer)
    fit.reset()
    given = {m.name: m.output for m in observer.record.modules if m.leaf and m.output is not None}
    return sum(math.prod(t.shape) * _width(t.dtype) for t in given.values())


def _size(variables: Iterable[Any]) -> int:
    return sum(math.prod(v.shape) * _width(str(v.dtype)) for v in variables)


def _width(dtype: str) -> int:
    """Bytes per number."""
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits.group()) // 8) if bits else 1
