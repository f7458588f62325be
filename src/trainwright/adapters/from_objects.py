"""Trainings passed as objects, and the framework type of an object."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.source.moved_code import at_line_of, find_watcher, watched_names


def is_hf_trainer(value: Any) -> bool:
    """Whether it is a transformers Trainer."""
    return _is_a(value, "transformers.", "Trainer")


def is_lightning_module(value: Any) -> bool:
    """Whether it is a LightningModule."""
    return _is_a(value, ("lightning.", "pytorch_lightning."), "LightningModule")


def is_module(value: Any) -> bool:
    """Whether it is a torch module."""
    return _is_a(value, "torch.", "Module")


def is_keras_model(value: Any) -> bool:
    """Whether it is a Keras or tf_keras model."""
    return _is_a(value, ("keras.", "tf_keras."), "Model")


def _is_a(value: Any, package: str | tuple[str, ...], name: str) -> bool:
    return any(k.__name__ == name and k.__module__.startswith(package) for k in type(value).__mro__)


def has_loader(module: Any) -> bool:
    """Whether a LightningModule defines its own training loader."""
    return not type(module).train_dataloader.__module__.startswith(("lightning.", "pytorch_lightning."))


# Epochs of a fit whose length nobody has said: its time ends it.
MOST_EPOCHS = 1_000


@dataclass(frozen=True, kw_only=True)
class ObjectsTraining:
    """How objects are trained. They change: it is run in a fork, or what they were is put back."""

    framework: str
    run: Callable[[Callable[[], bool]], None]
    """Given whether it is to end."""
    owners: Sequence[Any]
    """The objects that it changes."""


def of_trainer(trainer: Any, frame: FrameType) -> ObjectsTraining:
    """The training of a Hugging Face Trainer."""

    def run(is_over: Callable[[], bool]) -> None:
        from trainwright.adapters.torch.construction_lines import note_built, note_modules, note_trainer

        note_trainer(seen(), trainer, frame)
        note_modules(seen(), trainer.model, frame)
        note_built(seen(), frame, [trainer.optimizer] if trainer.optimizer is not None else [])
        with watched_names(frame.f_globals):
            at_line_of(_train, frame)(trainer)

    return ObjectsTraining(
        framework="transformers", run=run, owners=[trainer, trainer.model, trainer.args, trainer.state]
    )


def _train(trainer: Any) -> None:
    trainer.train()


def of_lightning(
    module: Any, loader: Any, evaluation_loader: Any, datamodule: Any, frame: FrameType
) -> ObjectsTraining:
    """The training of a LightningModule; without the user's trainer, Trainer defaults apply."""
    given = {"train_dataloaders": loader, "val_dataloaders": evaluation_loader, "datamodule": datamodule}

    def run(is_over: Callable[[], bool]) -> None:
        from trainwright.adapters.torch.construction_lines import note_built, note_modules

        note_modules(seen(), module, frame)
        note_built(seen(), frame, loaders=_loaders(loader, evaluation_loader))
        with _unheard(), watched_names(frame.f_globals):
            at_line_of(_fit, frame)(_silent_trainer(module), module, given)

    return ObjectsTraining(framework="lightning", run=run, owners=[o for o in (module, datamodule) if o is not None])


def _fit(trainer: Any, module: Any, given: Mapping[str, Any]) -> None:
    trainer.fit(module, **given)


def of_keras(model: Any, given: Mapping[str, Any], frame: FrameType) -> ObjectsTraining:
    """The training of a compiled Keras model with fit's arguments; without epochs, as many as there is time for."""

    def run(is_over: Callable[[], bool]) -> None:
        from trainwright.adapters.keras.from_objects import note_compiled

        note_compiled(seen(), model, frame)
        with watched_names(frame.f_globals):
            at_line_of(_fit_model, frame)(model, given if "epochs" in given else {**given, "epochs": MOST_EPOCHS})

    return ObjectsTraining(framework="keras", run=run, owners=[model])


def _fit_model(model: Any, given: Mapping[str, Any]) -> None:
    model.fit(**{"verbose": 0, **given})


def of_parts(
    frame: FrameType, *, model: Any, loader: Any, evaluation_loader: Any, loss: Any, optimizer: Any, scheduler: Any
) -> ObjectsTraining:
    """The training of a model, data, loss and optimizer passed separately."""
    schedulers = [scheduler] if scheduler is not None else []

    def run(is_over: Callable[[], bool]) -> None:
        from trainwright.adapters.torch import given_parts
        from trainwright.adapters.torch.construction_lines import note_built, note_modules

        note_modules(seen(), model, frame)
        note_built(seen(), frame, [optimizer], schedulers, _loaders(loader, evaluation_loader))
        given_parts.begin_training(model, optimizer)
        with watched_names(frame.f_globals):
            at_line_of(given_parts.train, frame)(
                model,
                loader,
                () if evaluation_loader is None else evaluation_loader,
                find_watcher(loss),
                optimizer,
                given_parts.given_of(model, has_loss=loss is not None),
                given_parts.loss_in if loss is None else given_parts.scores_in,
                is_over,
            )

    return ObjectsTraining(framework="torch", run=run, owners=[model, optimizer, *schedulers])


def _loaders(*loaders: Any) -> list[Any]:
    return [one for one in loaders if hasattr(one, "dataset")]


def _silent_trainer(module: Any) -> Any:
    """A Lightning Trainer for a training that is ended from outside; it writes nothing."""
    names = [k.__module__ for k in type(module).__mro__ if k.__name__ == "LightningModule"]
    with quiet():
        return importlib.import_module(
            "pytorch_lightning" if any(n.startswith("pytorch_lightning") for n in names) else "lightning.pytorch"
        ).Trainer(
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            max_epochs=-1,
            accelerator="auto" if any(p.device.type != "cpu" for p in module.parameters()) else "cpu",
            devices=1,
        )


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    import logging
    import warnings

    loggers = [
        logging.getLogger(n)
        for n in (
            "lightning",
            "lightning.pytorch",
            "pytorch_lightning",
            "lightning.pytorch.utilities.rank_zero",
            "lightning.fabric",
        )
    ]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


@contextlib.contextmanager
def kept(owners: Sequence[Any]) -> Iterator[None]:
    """Behind the context, objects and random state are what they were before it."""
    from trainwright.seams.state.reachable import ScriptState
    from trainwright.seams.state.snapshot import AttributeState, RandomState

    models = [o for o in owners if is_keras_model(o)]
    modules = [o for o in owners if is_module(o) and not is_keras_model(o)]
    inner = [m for top in modules for m in top.modules()]
    states: list[Any] = [RandomState()]
    if modules:
        from trainwright.seams.torch.state import ModelState, OptimizerState

        states += [ModelState(m) for m in modules]
        states += [OptimizerState(o) for o in owners if hasattr(o, "param_groups")]
    if models:
        from trainwright.adapters.keras.state import AllState

        states.append(AllState(models))
    others = [o for o in owners if not is_module(o) and not is_keras_model(o)]
    states += [AttributeState([*inner, *others]), ScriptState(owners, leave=models)]
    try:
        yield
    finally:
        for state in reversed(states):
            state.put_back()
