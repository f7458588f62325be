"""Trainwright runs a training script before its long run, watches it, and names the first cause of failure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.core import Report

__version__ = "0.1.0"


def check(
    training: Any = None,
    loader: Any = None,
    evaluation_loader: Any = None,
    *,
    model: Any = None,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    scheduler: Any = None,
    datamodule: Any = None,
    budget: float = 60.0,
    seed: int = 0,
    ignore: Sequence[str] = (),
    repair: bool = True,
    samples: bool = True,
    **fit: Any,
) -> Report:
    """Check a training that is about to start, and leave everything as it is.

    The objects are trained in a copy of this process, for at most 300 updates where they have no plan of their own; where it has
    begun to use a GPU, TensorFlow or JAX, here, and are then restored.

    `check(trainer)` for a transformers `Trainer`; `check(module, train_loader, val_loader)` or
    `check(module, datamodule=data)` for a `LightningModule`; for plain torch
    `check(model=…, loader=…, loss=…, optimizer=…)`, with `evaluation_loader=` and `scheduler=` if there are any;
    for a compiled Keras model `check(model, x=…, y=…)` with the arguments of its `fit`.

    Args:
        loader: yields the training batches: (inputs, targets), several inputs and the targets, a mapping with the
            targets under "labels", "target" or the like; without a loss, the arguments of `model`.
        loss: a function of (output, targets); None: the model gets the whole batch and returns its loss.
        budget: time limit, in seconds.
        seed: moves the random seeds of the run.
        ignore: names or codes of silenced rules.
        repair: fix faults in memory and go on.
        samples: show single rows of the data.
        fit: arguments of a Keras model's `fit`: x, y, batch_size, validation_data and the others.

    Raises:
        trainwright.errors.UsageError: if the arguments do not describe a training.
        trainwright.errors.UnsupportedVersion: if a framework is too old to be checked.
    """
    from trainwright.api import check as check_objects

    return check_objects(
        training,
        {"loader": loader, "evaluation_loader": evaluation_loader, "datamodule": datamodule},
        {"model": model, "loss": loss, "optimizer": optimizer, "scheduler": scheduler},
        fit,
        {"budget": budget, "seed": seed, "ignore": ignore, "repair": repair, "samples": samples},
        sys._getframe(1),
    )


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext trainwright`: registers the magic `%%check` in the notebook."""
    from trainwright.cell_magic import register

    register(shell)
