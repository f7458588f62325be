"""Adapters for trainings passed as objects, and the framework type of an object."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, cast

import wrapt

from trainwright.adapters.base import Adapter
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.seams.source.places import place_of


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


def of_trainer(seen: Seen, trainer: Any, frame: FrameType) -> Adapter:
    """The adapter of a Hugging Face Trainer."""
    from trainwright.adapters.torch.construction_lines import note_built, note_modules, note_trainer
    from trainwright.adapters.trainer.adapter import HFTrainerAdapter

    note_trainer(seen, trainer, frame)
    note_modules(seen, trainer.model, frame)
    note_built(seen, frame, [trainer.optimizer] if trainer.optimizer is not None else [])
    return HFTrainerAdapter(trainer, frame, seen)


def of_lightning(
    seen: Seen, module: Any, loader: Any, evaluation_loader: Any, datamodule: Any, frame: FrameType
) -> Adapter:
    """The adapter of a LightningModule; without the user's trainer, Trainer defaults apply."""
    from trainwright.adapters.lightning.body import LightningBody
    from trainwright.adapters.lightning.fit import Fit
    from trainwright.adapters.loop.adapter import LoopAdapter
    from trainwright.adapters.torch.construction_lines import note_built, note_modules, scope_of

    note_modules(seen, module, frame)
    loaders = [v for v in (loader, evaluation_loader) if type(v).__hash__ is not None and v is not None]
    note_built(seen, frame, loaders=[v for v in loaders if hasattr(v, "__weakref__")])
    kept = _Kept([o for o in (module, datamodule) if o is not None])
    try:
        fit = Fit(
            module=module,
            trainer=_silent_trainer(module),
            train=loader,
            validation=evaluation_loader,
            datamodule=datamodule,
            where=place_of(frame),
            scope=scope_of(frame),
        )
        return cast(Adapter, _Undone(LoopAdapter(LightningBody(fit, seen), seen), kept))
    except BaseException:
        kept.put_back()
        raise


def of_parts(
    seen: Seen,
    frame: FrameType,
    *,
    model: Any,
    loader: Any,
    evaluation_loader: Any,
    loss: Any,
    optimizer: Any,
    scheduler: Any,
) -> Adapter:
    """The adapter of a model, data, loss and optimizer passed separately."""
    from trainwright.adapters.loop.adapter import LoopAdapter
    from trainwright.adapters.loop.body_of_objects import ObjectsBody
    from trainwright.adapters.torch.construction_lines import note_built, note_modules, scope_of

    note_modules(seen, model, frame)
    loaders = [v for v in (loader, evaluation_loader) if hasattr(v, "dataset")]
    note_built(seen, frame, [optimizer], [scheduler] if scheduler is not None else [], loaders)
    kept = _Kept([model])
    if not model.training:  # a loop would call train(); frozen parts of a training model stay as they are
        model.train()
    body = ObjectsBody(
        model=model,
        loader=loader,
        loss=loss,
        optimizer=optimizer,
        evaluation_loader=evaluation_loader,
        where=place_of(frame),
        scope=scope_of(frame),
    )
    return cast(Adapter, _Undone(LoopAdapter(body, seen), kept))


def _silent_trainer(module: Any) -> Any:
    """A Lightning Trainer for modules that query their trainer; it writes nothing."""
    from trainwright.adapters.lightning.fit import package_of

    with quiet(), _unheard():
        return importlib.import_module(package_of(module)).Trainer(
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            max_epochs=-1,
            accelerator="auto" if _on_accelerator(module) else "cpu",
            devices=1,
        )


def _on_accelerator(module: Any) -> bool:
    return any(p.device.type != "cpu" for p in module.parameters())


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


class _Kept:
    """Objects and random state as they were before any of the user's code was called."""

    def __init__(self, owners: Sequence[Any]) -> None:
        from trainwright.seams.state.reachable import ScriptState
        from trainwright.seams.state.snapshot import AttributeState, RandomState
        from trainwright.seams.torch.state import ModelState

        modules = [o for o in owners if is_module(o)]
        self._random = RandomState()
        self._script = ScriptState(owners)
        inner = [m for top in modules for m in top.modules()]
        self._attributes = AttributeState([*inner, *(o for o in owners if not is_module(o))])
        self._values = [ModelState(m) for m in modules]

    def put_back(self) -> None:
        """Restore them."""
        self._script.put_back()
        self._attributes.put_back()
        for state in self._values:
            state.put_back()
        self._random.put_back()


class _Undone(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """An adapter and the state from before it was built; `put_back` restores both."""

    def __init__(self, adapter: Adapter, kept: _Kept) -> None:
        super().__init__(adapter)
        self._self_kept = kept

    def put_back(self) -> None:
        """Undo everything."""
        self.__wrapped__.put_back()
        self._self_kept.put_back()
