"""Nats per token on held-out windows; each token counts once, however it is batched and distributed."""

from __future__ import annotations

import math

import numpy as np
import torch

from trainwright_lm.network.loss import computing
from trainwright_lm.network.model import Transformer
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.training.processes import Processes, SummedLoss

# Windows per forward pass; the loss is chunked, so the layers' activations dominate memory.
AT_ONCE = 32


def evaluate_windows(
    model: Transformer, windows: Windows, *, precision: str = "fp32", at_once: int = AT_ONCE, limit: int = 0
) -> float:
    """Nats per token over all targets of all windows; NaN if there are none.

    Args:
        precision: fp32 or bf16, for the forward passes.
        at_once: windows per forward pass; affects only rounding.
        limit: use this many windows, evenly spaced; 0: all.
    """
    device = next(model.parameters()).device
    return mean_nats(SummedLoss(model), windows, Processes(device=device), precision, at_once=at_once, limit=limit)


def mean_nats(
    loss: SummedLoss, windows: Windows, processes: Processes, precision: str, *, at_once: int = AT_ONCE, limit: int = 0
) -> float:
    """The same for a model trained by several processes: each evaluates a part of the windows and gets the result."""
    chosen = _spread_evenly(len(windows), limit)
    own = chosen[processes.rank :: processes.count]
    passes = math.ceil(len(chosen[:: processes.count]) / at_once)
    nats = torch.zeros((), dtype=torch.float64, device=processes.device)
    training = loss.training
    loss.eval()
    with torch.no_grad(), computing(precision, processes.device):
        for number in range(passes):
            indices = own[number * at_once : (number + 1) * at_once]
            # Sharded models exchange weights in a forward pass, so a process without windows left must take part too.
            rows = torch.from_numpy(windows.batch(indices if len(indices) else chosen[:1])).to(processes.device)
            summed = loss(rows[:, :-1], rows[:, 1:])
            nats += summed.double() if len(indices) else 0.0
    loss.train(training)
    tokens = len(chosen) * windows.context
    return processes.total(nats).item() / tokens if tokens else float("nan")


def _spread_evenly(count: int, limit: int) -> np.ndarray:
    if not limit or limit >= count:
        return np.arange(count)
    return np.arange(limit) * count // limit
