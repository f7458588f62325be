"""Compiles a training's layers and loss, and keeps them so only if their gradients are those of the uncompiled ones."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from trainwright_lm.config import Recipe
from trainwright_lm.network.loss import computing
from trainwright_lm.training.processes import Processes, SummedLoss

# How much of a parameter's gradient, by its norm, another order of rounding may change. Seen on a CPU: 1e-6 in fp32,
# 0.007 in bf16. The comparison is there because layers that torch 2.11 had compiled for a GPU trained worse (0.74 nats
# after 16 updates on one batch, 5.1 compiled as a whole, 0.13 uncompiled), in silence.
MOST_CHANGED = {"fp32": 0.001, "bf16": 0.1}
NEGLIGIBLE = 1e-5


def is_wanted(recipe: Recipe, processes: Processes) -> bool:
    """Whether to compile: as the recipe says; auto: on a GPU, where launching single operations takes most of the time.

    Not of shards by itself: the trial takes the whole model's gradients.
    """
    if recipe.run.compile != "auto":
        return recipe.run.compile
    return processes.device.type == "cuda" and (processes.count == 1 or recipe.run.distributed == "ddp")


def compile_loss(loss: SummedLoss, inputs_BT: Tensor, targets_BT: Tensor, precision: str, processes: Processes) -> str:
    """Compile the layers and the loss in place, try them on these windows, and undo it if that fails; returns a message."""
    begun, worst, why = time.monotonic(), 0.0, ""
    with _without_dropout(loss.model):  # compiled, it draws other numbers
        uncompiled = _gradients(loss, inputs_BT, targets_BT, precision)
    try:
        for layer in loss.model.layers:
            layer.compile()
        loss.compiled = True
        with _without_dropout(loss.model):
            name, worst = _most_changed(uncompiled, _gradients(loss, inputs_BT, targets_BT, precision))
        if not worst <= MOST_CHANGED[precision]:
            why = f"compiled by torch {torch.__version__}, the gradient of {name} differs by {worst:.1%}"
        elif loss.model.config.dropout:
            _gradients(loss, inputs_BT, targets_BT, precision)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # the compiler's, of any kind
        said = (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
        why = f"the compiler failed with {type(error).__name__}: {said}"
    if processes.any(bool(why)):
        for layer in loss.model.layers:
            layer._compiled_call_impl = None
        loss.compiled = False
        return f"Nothing is compiled: {why or 'it failed in another process'}. Training is right, but slower."
    return (
        f"Layers and loss compiled in {time.monotonic() - begun:.0f} s; their gradients differ from the uncompiled ones' by at "
        f"most {worst:.2g} of each."
    )


@contextlib.contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    held = [(one, name, getattr(one, name, None)) for one in model.modules() for name in ("p", "dropout")]
    held = [(one, name, share) for one, name, share in held if isinstance(share, float)]
    for one, name, _ in held:
        setattr(one, name, 0.0)
    try:
        yield
    finally:
        for one, name, share in held:
            setattr(one, name, share)


@contextlib.contextmanager
def uncompiled(loss: SummedLoss) -> Iterator[None]:
    """A context for passes of other shapes, each of which would be compiled anew."""
    stance: AbstractContextManager[object] = nullcontext()
    if loss.compiled:
        stance = torch.compiler.set_stance("force_eager")
    with stance:
        yield


def _gradients(loss: SummedLoss, inputs_BT: Tensor, targets_BT: Tensor, precision: str) -> dict[str, Tensor]:
    named = dict(loss.model.named_parameters())
    with computing(precision, inputs_BT.device):
        nats = loss(inputs_BT, targets_BT)
    return dict(zip(named, torch.autograd.grad(nats / targets_BT.numel(), list(named.values())), strict=True))


def _most_changed(uncompiled: dict[str, Tensor], compiled: dict[str, Tensor]) -> tuple[str, float]:
    """The parameter whose gradient differs most, and by how much of its norm; NaN counts as the most."""
    # Of a gradient that is next to nothing beside all others, rounding may change everything.
    least = NEGLIGIBLE * torch.stack([gradient.norm() for gradient in uncompiled.values()]).norm()
    changed = {
        name: float((compiled[name] - gradient).norm() / torch.maximum(gradient.norm(), least))
        for name, gradient in uncompiled.items()
    }
    name = max(changed, key=lambda one: math.inf if math.isnan(changed[one]) else changed[one])
    return name, changed[name]
