"""The loss during a training: nats per token on held-out windows, each counted once."""

from __future__ import annotations

import math

import numpy as np
import torch

from trainwright_lm.network.loss import computing
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.training.processes import Processes, SummedLoss

# Windows per forward pass; the loss is chunked, so the layers' activations dominate memory.
AT_ONCE = 32


def mean_nats(
    loss: SummedLoss,
    windows: Windows,
    processes: Processes,
    precision: str = "fp32",
    *,
    at_once: int = AT_ONCE,
    limit: int = 0,
) -> float:
    """Nats per token over all targets of all windows; NaN if there are none. Each process evaluates a part of them.

    Args:
        precision: fp32 or bf16, for the forward passes.
        at_once: windows per forward pass; affects only rounding.
        limit: use this many windows, evenly spaced; 0: all.
    """
    count = min(limit or len(windows), len(windows))
    chosen = np.arange(count) * len(windows) // max(count, 1)
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
