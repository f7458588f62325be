"""What is measured during a training: nats per token on held-out windows, each counted once; completed prompts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainwright_lm.completion.complete import complete
from trainwright_lm.config import Recipe
from trainwright_lm.network.loss import computing
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import Run
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.tokenizer import Tokenizer
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


def sample(model: Transformer, tokenizer: Tokenizer, recipe: Recipe, update: int) -> dict[str, str]:
    """The greedy completion of each prompt to the end of the line; draws no random numbers."""
    training = model.training
    run = Run(folder=Path(), recipe=recipe, model=model.eval(), tokenizer=tokenizer, step=update)
    try:
        return {prompt: complete(run, prompt) for prompt in recipe.run.prompts}
    finally:
        model.train(training)


def unsharded(recipe: Recipe, tensors: dict[str, Tensor]) -> Transformer:
    """A separate model with these weights, for completions while the trained one is sharded."""
    model = Transformer(recipe.model)
    model.load_state_dict(tensors)
    return model
