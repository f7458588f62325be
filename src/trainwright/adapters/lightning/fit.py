"""The arguments of a call of Lightning's `Trainer.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.loops.found_loops import callers
from trainwright.seams.source.places import place_of


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The arguments of `Trainer.fit`."""

    module: Any
    trainer: Any
    train: Any = None
    """The training loader or loaders; None: the module or the data module makes them."""
    validation: Any = None
    datamodule: Any = None
    where: Place | None = None
    scope: Mapping[str, Any] = field(default_factory=dict)
    """The user's objects by name."""


def fit_of(trainer: Any, given: Mapping[str, Any], frame: FrameType) -> Fit:
    """Interpret a call of `Trainer.fit` with these arguments in a user's frame."""
    scope: dict[str, Any] = {}
    for around in reversed([frame, *callers(frame)]):
        scope |= {k: v for k, v in around.f_locals.items() if not k.startswith("__")}
    train, datamodule = given.get("train_dataloaders"), given.get("datamodule")
    if hasattr(train, "train_dataloader") and hasattr(train, "prepare_data"):
        train, datamodule = None, train
    module = getattr(given.get("model"), "_orig_mod", given.get("model"))  # the module inside torch.compile
    return Fit(
        module=module,
        trainer=trainer,
        train=train,
        validation=given.get("val_dataloaders"),
        datamodule=datamodule,
        where=place_of(frame),
        scope=scope,
    )


def package_of(module: Any) -> str:
    """The package of a module's base class: `lightning.pytorch` or `pytorch_lightning`."""
    names = [k.__module__ for k in type(module).__mro__ if k.__name__ == "LightningModule"]
    return "pytorch_lightning" if any(n.startswith("pytorch_lightning") for n in names) else "lightning.pytorch"
