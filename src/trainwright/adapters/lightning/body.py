"""A LightningModule as the body of a training loop: its training step, and what Lightning does around it.

The module's own hooks are called as `Trainer.fit` would call them; callbacks and loggers are not. The trainer that the
module sees is a stand-in, attached only while the module's code runs.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from trainwright.adapters.lightning.answers import detached_answer, first_loader, loaders_made, loss_of_answer
from trainwright.adapters.lightning.fit import Fit, package_of
from trainwright.adapters.lightning.stand_in_trainer import StandIn, attached, configured
from trainwright.adapters.lightning.watchers import measure_watchers
from trainwright.adapters.lightning.words import WORDS
from trainwright.adapters.torch.plain_body import PlainBody
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import of_pipeline
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.seen import Seen
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import keyword_places
from trainwright.seams.torch.gates import Passed

# Methods of the user's module that reports name, by role.
_METHODS = {
    "training_step": "training_step",
    "configure_optimizers": "create_optimizer",
    "optimizer_zero_grad": "zero_grad",
    "optimizer_step": "optimizer_step",
    "lr_scheduler_step": "schedule_step",
    "backward": "backward",
}
# The names of Trainer's arguments for the roles that rules look up.
_ARGUMENTS = {"accumulate_grad_batches": "gradient_accumulation_steps", "gradient_clip_val": "max_grad_norm"}


class LightningBody(PlainBody):
    """One step of `Trainer.fit`. Exceptions from the user's hooks propagate."""

    framework = "lightning"
    words = WORDS

    def __init__(self, fit: Fit, seen: Seen) -> None:
        self.fit = fit
        self.module = fit.module
        self.automatic_steps: bool = fit.module.automatic_optimization
        self.where = fit.where
        self.drawn: dict[Any, Any] = {}
        self.modules: list[nn.Module] = [fit.module]
        self._seen = seen
        self._round = 0
        self._train, self._validation = fit.train, fit.validation
        self.accumulation: int = getattr(fit.trainer, "accumulate_grad_batches", 1)
        self.stand_in = StandIn(fit.trainer, fit.module, fit.datamodule)
        self._prepare()
        self.steps = bool(self.stand_in.optimizers)

    # Before the first step, as in fit

    def _prepare(self) -> None:
        module, datamodule, said = self.module, self.fit.datamodule, self.stand_in
        with self._attached():
            owners = [o for o in (datamodule, module) if o is not None]
            for owner in owners:
                owner.prepare_data()
            for owner in owners:
                owner.setup("fit")
            if hasattr(module, "configure_model"):
                module.configure_model()
            self._move()
            self._load()
            found = configured(module.configure_optimizers())
            said.optimizers, said.lr_scheduler_configs = found.optimizers, found.schedules
        with self._attached(), muted():
            for name in ("on_fit_start", "on_train_start", "on_train_epoch_start"):
                getattr(module, name)()

    def _move(self) -> None:
        """Move the module to the trainer's device and precision."""
        plugin, strategy = self._plugin, getattr(self.fit.trainer, "strategy", None)
        if hasattr(plugin, "convert_module"):
            plugin.convert_module(self.module)
        device = getattr(strategy, "root_device", None)
        if device is not None and device.type not in ("meta", self._device.type):
            self.module.to(device)

    def _load(self) -> None:
        """Get the loaders from fit's arguments, or from the object that defines them."""
        makers = [o for o in (self.fit.datamodule, self.module) if o is not None]
        if self._train is None:
            self._train = loaders_made(makers, "train_dataloader")
        if self._validation is None:
            self._validation = loaders_made(makers, "val_dataloader")
        count = self.batches_per_epoch
        said = self.stand_in
        said.train_dataloader, said.val_dataloaders = self._train, self._validation
        said.num_training_batches = math.inf if count is None else count
        said.estimated_stepping_batches = self._updates(self.accumulation) or math.inf

    @property
    def batches_per_epoch(self) -> int | None:
        """The number of batches in an epoch; None if the loader does not say."""
        try:
            count = len(self._combined(self._train))
        except (TypeError, NotImplementedError):
            return None
        limit = getattr(self.fit.trainer, "limit_train_batches", 1.0)
        if isinstance(limit, float):
            return int(count * limit)
        return min(count, limit) if isinstance(limit, int) else count

    def _combined(self, loaders: Any) -> Any:
        """One loader; several are combined, as Lightning does."""
        if not isinstance(loaders, (list, tuple, dict)):
            return loaders
        if isinstance(loaders, (list, tuple)) and len(loaders) == 1:
            return loaders[0]
        package = package_of(self.module)
        combined = importlib.import_module(f"{package}.utilities.combined_loader").CombinedLoader(
            loaders, "max_size_cycle"
        )
        iter(combined)  # sets its length
        return combined

    # The body (adapters.loop.body.Body)

    @property
    def scope(self) -> dict[str, Any]:
        """The script's objects, the module's attributes, and the loaders."""
        own = {
            "train_dataloader": self._train,
            "val_dataloader": first_loader(self._validation),
            "lightning_module": self.module,
            "datamodule": self.fit.datamodule,
        }
        found = {k: v for k, v in own.items() if v is not None}  # what fit uses takes precedence
        held = {id(v) for v in found.values()}
        others = {k: v for k, v in vars(self.module).items() if not k.startswith("_")} | dict(self.fit.scope)
        return found | {k: v for k, v in others.items() if id(v) not in held and k not in found}

    @property
    def places(self) -> dict[str, Place]:
        """The user's lines: the module's methods and the Trainer's arguments."""
        places: dict[str, Place] = {}
        for method, role in _METHODS.items():
            code = getattr(inspect.unwrap(getattr(type(self.module), method)), "__code__", None)
            if code is not None and is_users(code.co_filename):
                places[role] = Place(show(code.co_filename), code.co_firstlineno)
        built = self._seen.constructions.get(id(self.fit.trainer))
        if built is not None:
            written = keyword_places(built.frame_file, built.line, built.name, built.keywords, built.end)
            places |= {_ARGUMENTS.get(k, k): place for k, (place, _) in written.items()}
            places["trainer"] = built.place
        return places

    def items(self) -> Iterator[Any]:
        """The batches of an epoch, as the loaders yield them."""
        if self._train is None:
            raise of_pipeline(ValueError("fit has no training data: there is no loader and no method train_dataloader"))
        combined = self._combined(self._train)
        numbered = type(combined).__name__ == "CombinedLoader"
        for item in combined:
            yield item[0] if numbered else item

    def start_over(self) -> None:
        """Restore the state before the first step."""
        self._round = 0
        self.stand_in.start_over()

    def updates_planned(self, training: Any) -> int | None:
        """How many updates the real training would make."""
        return self._updates(training.window)

    def _updates(self, window: int) -> int | None:
        trainer, count = self.fit.trainer, self.batches_per_epoch
        if getattr(trainer, "fast_dev_run", False):  # runs a single batch to test the code
            return None
        epochs, most = getattr(trainer, "max_epochs", None), getattr(trainer, "max_steps", -1)
        known = count is not None and epochs is not None and epochs > 0
        planned = [math.ceil(count / window) * epochs] if known and count is not None and epochs else []
        return min([*planned, *([most] if most is not None and most > 0 else [])], default=None)

    def epochs(self) -> int | None:
        """The number of epochs, if they determine the trainer's end."""
        epochs, most = (getattr(self.fit.trainer, "max_epochs", None), getattr(self.fit.trainer, "max_steps", -1))
        limited = (most is not None and most > 0) or getattr(self.fit.trainer, "fast_dev_run", False)
        return epochs if epochs is not None and epochs > 0 and not limited else None

    def schedule_pace(self, training: Any) -> float:
        """How many times a schedule steps per update."""
        if not self.stand_in.lr_scheduler_configs:
            return 0.0
        if not self.module.automatic_optimization:
            passed: Passed = training.parts.passed
            return passed.calls.count("schedule") / max(1, len(passed.schedules))
        config = self.stand_in.lr_scheduler_configs[0]
        if config.interval == "step":
            return 1.0 / float(config.frequency)
        count = self.batches_per_epoch
        return float(training.window) / count / float(config.frequency) if count else 0.0

    def run(self, item: Any, turn: int) -> None:
        """Run one batch, with the module's hooks for it."""
        module, index = self.module, self._round
        self._round += 1
        with self._attached():
            batch = self._transferred(item)
            if module.on_train_batch_start(batch, index) == -1:
                return
            if module.automatic_optimization:
                output = self._automatic(batch, index)
            else:
                output = self._step(module.training_step, batch, index)
            module.on_train_batch_end(detached_answer(output), batch, index)

    # A step of automatic optimization

    def _automatic(self, batch: Any, index: int) -> Any:
        module, said = self.module, self.stand_in
        optimizer = said.optimizers[0] if said.optimizers else None
        closes = (index + 1) % self.accumulation == 0
        outputs: list[Any] = []
        asked: list[bool] = []

        def closure() -> Any:
            outputs.append(self._step(module.training_step, batch, index))
            return self._backward(outputs[-1], optimizer, index, closes)

        if optimizer is None or not closes:
            closure()
        else:
            # Only optimizers that need a closure several times get one; for others, the order is that of a plain loop.
            loss = None if _needs_closure(optimizer) else closure()

            def ready() -> Any:
                asked.append(True)
                return closure() if _needs_closure(optimizer) else loss

            module.optimizer_step(said.current_epoch, index, optimizer, ready)
            if not asked:
                raise of_pipeline(_not_executed(module))
            said.global_step += 1
            self._move_schedules(index)
        return outputs[-1] if outputs else None

    def _backward(self, output: Any, optimizer: Any, index: int, closes: bool) -> Any:
        module = self.module
        loss = loss_of_answer(output)
        if optimizer is not None and index % self.accumulation == 0:
            module.on_before_zero_grad(optimizer)
            module.optimizer_zero_grad(self.stand_in.current_epoch, index, optimizer)
        if loss is not None:
            loss = loss / self.accumulation
            module.on_before_backward(loss)
            module.backward(loss)
            module.on_after_backward()
        if optimizer is not None and closes:
            module.on_before_optimizer_step(optimizer)
            trainer = self.fit.trainer
            module.configure_gradient_clipping(
                optimizer,
                gradient_clip_val=getattr(trainer, "gradient_clip_val", None),
                gradient_clip_algorithm=getattr(trainer, "gradient_clip_algorithm", None),
            )
        return None if loss is None else loss.detach()

    def _move_schedules(self, index: int) -> None:
        for config in self.stand_in.lr_scheduler_configs:
            if config.interval == "step" and not config.reduce_on_plateau and (index + 1) % config.frequency == 0:
                self.module.lr_scheduler_step(config.scheduler, None)

    # Evaluation

    def evaluate(self, batches: int) -> list[Any]:
        """The return values of validation_step for the first batches, in evaluation mode; exceptions propagate.

        Empty if there is no validation.
        """
        loader, module = first_loader(self._validation), self.module
        if loader is None:
            return []
        several = isinstance(self._validation, (list, tuple)) and len(self._validation) > 1
        modes = [(m, m.training) for m in module.modules()]
        outputs = []
        try:
            with self._attached(), muted(), torch.no_grad():
                self.stand_in.training, self.stand_in.validating = False, True
                module.on_validation_model_eval()
                for name in ("on_validation_start", "on_validation_epoch_start"):
                    getattr(module, name)()
                for index, item in zip(range(batches), loader):
                    batch = self._transferred(item)
                    outputs.append(self._step(module.validation_step, batch, index, *([0] if several else [])))
                module.on_validation_epoch_end()
        finally:
            self.stand_in.training, self.stand_in.validating = True, False
            for inner, mode in modes:
                inner.training = mode
        return outputs

    def watched(self) -> dict[str, Any]:
        """What follows a metric, and the logged metrics, as fields of the evaluation's facts; after `evaluate`."""
        if first_loader(self._validation) is None:
            return {}
        watchers, logged = measure_watchers(self.fit, self.stand_in, self._seen)
        return {"watchers": watchers, "logged": logged}

    # Calling the user's code

    def _attached(self) -> Any:
        return attached(self.module, self.stand_in, self.fit.datamodule)

    @property
    def _plugin(self) -> Any:
        return getattr(self.fit.trainer, "precision_plugin", None)

    @property
    def _device(self) -> torch.device:
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    def _step(self, function: Callable[..., Any], batch: Any, *numbers: int) -> Any:
        """Call a step with as many of the numbers as it accepts."""
        parameters = inspect.signature(function).parameters.values()
        takes_any = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        given = numbers if takes_any else numbers[: max(0, len(parameters) - 1)]
        context = getattr(self._plugin, "train_step_context", contextlib.nullcontext)
        with context():
            return function(batch, *given)

    def _transferred(self, batch: Any) -> Any:
        """A batch as the step receives it: after the module's transfer hooks, or the data module's own."""
        if hasattr(self._plugin, "convert_input"):
            batch = self._plugin.convert_input(batch)
        batch = self._hook_owner("on_before_batch_transfer").on_before_batch_transfer(batch, 0)
        batch = self._hook_owner("transfer_batch_to_device").transfer_batch_to_device(batch, self._device, 0)
        return self._hook_owner("on_after_batch_transfer").on_after_batch_transfer(batch, 0)

    def _hook_owner(self, name: str) -> Any:
        datamodule = self.fit.datamodule
        code = getattr(getattr(type(datamodule), name, None), "__code__", None)
        return datamodule if code is not None and is_users(code.co_filename) else self.module


def _not_executed(module: Any) -> Exception:
    """What Lightning raises after an `optimizer_step` of the user's that leaves the training step out."""
    exceptions = importlib.import_module(f"{package_of(module)}.utilities.exceptions")
    error: Exception = exceptions.MisconfigurationException(
        "The closure hasn't been executed. HINT: did you call `optimizer_closure()` in your `optimizer_step` hook? It "
        "could also happen because the `optimizer.step(optimizer_closure)` call did not execute it internally."
    )
    return error


def _needs_closure(optimizer: Any) -> bool:
    """Whether an optimizer computes the loss several times in a step."""
    parameter = inspect.signature(type(optimizer).step).parameters.get("closure")
    return parameter is not None and parameter.default is parameter.empty
