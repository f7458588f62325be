"""Stage 0, setup: the call that would start training and its arguments, or what stopped the script before it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainwright.core import Facts, Failure, Place, Role, Stage
from trainwright.stages.gradients import PlainList
from trainwright.stages.words import Words

# How many numbers an optimizer keeps for each trainable one, by the beginning of its class's name or of its setting's.
_KEPT = {
    **dict.fromkeys(("adamax", "adamw", "adam", "nadam", "radam", "lamb", "adadelta", "rprop"), 2),
    **dict.fromkeys(("rmsprop", "adagrad", "lion"), 1),
    "sgd": 0,
}
# Names that begin like these, of optimizers that keep fewer bits for each number.
_SMALLER = re.compile(r"8bit|4bit|anyprecision", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Argument:
    """The effective value of a hyperparameter."""

    value: Any
    given: bool
    """False: a default."""


@dataclass(frozen=True, kw_only=True)
class RefusedCall:
    """A call of a framework function that raised an exception."""

    function: str
    """Its usual name: `TrainingArguments`, `Trainer`."""
    argument: str
    """The name of the argument it does not accept; empty if it raised for another reason."""
    value: Any
    given: Mapping[str, Any]
    """All keyword arguments of the call; a value that is not a plain type is replaced by the name of its type."""
    accepts: tuple[str, ...]
    """The parameter names of the installed version."""
    library: str
    """Distribution and version: `transformers 5.23.0`."""
    failure: Failure
    places: Mapping[str, Place] = field(default_factory=dict)
    """Where each keyword argument was written."""
    repairable: bool = True
    """False if the call cannot be repeated, because only its exception was seen."""


@dataclass(frozen=True, kw_only=True)
class OverriddenMethod:
    """A framework method that the user's subclass overrides."""

    name: str
    missing: tuple[str, ...]
    """Arguments that the framework passes but the override does not accept."""
    where: Place | None


@dataclass(frozen=True, kw_only=True)
class MisspelledMethod:
    """A method of a user's class whose name is nearly that of a method which the framework calls."""

    owner: str
    """The class."""
    base: str
    """The framework's class that it is derived from."""
    written: str
    meant: str
    inherited: bool
    """The framework's class has a method of the meant name, which runs instead; False: the class has none."""
    where: Place


@dataclass(frozen=True, kw_only=True)
class UndefinedName:
    """A name that a line of the script uses and that nothing sets."""

    name: str
    meant: str
    """A name of the script that differs by a slip of the pen; empty if there is none."""
    where: Place


@dataclass(frozen=True, kw_only=True)
class EmptyParameters:
    """What an optimizer was given that contains no parameter."""

    expression: str
    """As the script writes it: `model.parameters()`."""
    is_iterator: bool
    """A variable that was assigned what a model's `parameters()` returned, which can be read only once."""
    lists: tuple[PlainList, ...]
    """The model's attributes that hold layers without registering them."""
    where: Place | None
    """The line that built the model."""


@dataclass(frozen=True, kw_only=True)
class EmptySet:
    """A data set without rows that a loader was given."""

    kind: str
    """Its class."""
    expression: str
    """As the script writes it; empty if that is unknown."""
    where: Place | None
    """The line that made it."""


@dataclass(frozen=True, kw_only=True)
class TextLabels:
    """Texts, one per row and few of them different, that the script passed on as numbers."""

    expression: str
    """As the script writes them."""
    rows: int
    names: tuple[str, ...]
    """The different texts, sorted."""


@dataclass(frozen=True, kw_only=True)
class IneffectiveFreeze:
    """An assignment of False to an attribute whose name suggests freezing, but which freezes nothing."""

    attribute: str
    on_modules: bool
    """It was set on layers; False: on parameters, with a misspelled name."""
    kind: str
    objects: int
    """Number of objects in the model that it was set on."""
    parameters: tuple[str, ...]
    """Names of the parameters there that still require a gradient."""
    where: Place
    after_compile: bool = False
    """It would have taken effect before the training step was compiled; `parameters` are those that a step was seen
    to change."""


@dataclass(frozen=True, kw_only=True)
class MissingName:
    """A name that the script expects in an installed library, but that does not exist there."""

    owner: str
    """The module; or the names of the object's classes, most specific first, joined by spaces."""
    name: str
    of_class: bool
    package: str
    library: str
    """Distribution and version: `transformers 5.23.0`."""
    near: tuple[str, ...] = ()
    """Similar names in that module."""
    wanted_by: str = ""
    """The library whose code uses the name, if it was not the user's code."""
    where: Place | None = None


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """What one of several processes was about to train with. A hash is empty if there was nothing to hash."""

    rank: int
    world_size: int
    """Number of processes that the launcher started."""
    believed: int
    """Number of processes as seen by this process: 1 if it runs as if it were alone."""
    rows: int | None = None
    """Number of rows in its training set."""
    sharded: bool = False
    """A sampler splits the rows between the ranks."""
    samples: str = ""
    """Hash of a few rows of the training set, at the same indices on each rank."""
    batch: str = ""
    """Hash of the first batch."""
    weights: str = ""
    """Hash of the weights; empty if the first rank's weights are sent to the others later."""
    failure: str = ""
    """What ended the process before training."""


@dataclass(frozen=True, kw_only=True)
class OtherProcess:
    """A process other than the script's own that uses an accelerator's memory."""

    pid: int
    name: str
    held_bytes: int


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """A GPU that training may use, as listed by its driver."""

    index: int
    name: str
    total_bytes: int
    others: tuple[OtherProcess, ...] = ()
    """Ordered by memory use, largest first."""


@dataclass(frozen=True, kw_only=True)
class UnmatchedCheckpoint:
    """A state dict that was loaded without strictness, and of which hardly any name is the model's."""

    model: str
    """The class of the model or layer that it was loaded into."""
    tensors: int
    """How many tensors it holds."""
    matched: int
    """How many of them were loaded."""
    expected: int
    """How many the model has."""
    example: str
    wanted: str
    """One of its names, and one of the model's."""
    prefix: str
    """With this beginning of its names …"""
    renamed: str
    """… replaced by this one …"""
    would_match: int
    """… so many names would match; 0 if no such replacement helps."""
    where: Place


@dataclass(frozen=True, kw_only=True)
class SetupFacts(Facts):
    """The state when training was about to start, or when the script ended without training."""

    stage = Stage.SETUP
    framework: str | None = None
    words: Words = field(default_factory=Words)
    """The framework's terms for the things that rules mention."""
    automatic_steps: bool = False
    """The framework calls backward and steps the optimizer and schedule itself."""
    versions: Mapping[str, str] = field(default_factory=dict)
    call: str = ""
    """The call that would start training: `Trainer.train`; empty if none was reached."""
    failure: Failure | None = None
    """The exception that ended the script before training."""
    refused: RefusedCall | None = None
    missing: MissingName | None = None
    empty: EmptyParameters | None = None
    """Known only if the script ended because an optimizer got no parameters; then so are the model's numbers."""
    empty_set: EmptySet | None = None
    text_labels: TextLabels | None = None
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """Effective hyperparameters, by the framework's names (learning_rate, warmup_steps…)."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """The user's lines by role (`core/role.py`), and those of arguments by argument name."""
    overrides: tuple[OverriddenMethod, ...] = ()
    misspelled: tuple[MisspelledMethod, ...] = ()
    undefined: tuple[UndefinedName, ...] = ()
    model_class: str = ""
    idle: tuple[str, ...] = ()
    """Settings of the model that change nothing, each in a few words."""
    loads_checkpoint: bool = False
    """The model's weights (or at least its base model's) were loaded from a checkpoint."""
    trained_before: bool = False
    """An earlier training of the script trained some of the model's parameters."""
    unmatched_checkpoints: tuple[UnmatchedCheckpoint, ...] = ()
    parameters: int = 0
    trainable_parameters: int = 0
    planned_memory: PlannedMemory | None = None
    frozen_at: tuple[Place, ...] = ()
    """The user's lines that set requires_grad to False; the one that froze the most parameters comes first."""
    ineffective_freezes: tuple[IneffectiveFreeze, ...] = ()
    device: str = "cpu"
    accelerators: tuple[Accelerator, ...] = ()
    """The GPUs that the script uses; empty if it uses none, or if no driver lists them."""
    takes_all_memory: bool = False
    """The framework allocates nearly all free memory of each GPU when it first uses one."""
    precision: str = "fp32"
    """The forward pass's precision: fp32, bf16 or fp16."""
    batch_size: int = 0
    accumulation: int = 1
    epochs: float | None = None
    planned_updates: int | None = None
    ranks: tuple[RankFacts, ...] = ()
    """One entry per process, if several train on this machine; otherwise empty."""

    def place(self, *roles: Role) -> Place | None:
        """The user's line for the first of these roles that has one."""
        return next((self.places[r] for r in roles if r in self.places), None)


@dataclass(frozen=True, kw_only=True)
class PlannedMemory:
    """The bytes of weights, of their gradients, and of the optimizer's state; 0: that class's state is not known."""

    weights_bytes: int
    gradients_bytes: int
    state_bytes: int = 0
    state_known: bool = False


def planned_memory(
    weights_bytes: int, gradients_bytes: int, optimizer: str, *, momentum: bool = False
) -> PlannedMemory:
    """The memory of a training without its batch.

    Args:
        optimizer: its class, or the framework's name for it (AdamW, adamw_torch_fused).
        momentum: it keeps one more number for each trainable one.
    """
    name = re.split(r"_", optimizer.lower())[0]
    kept = None if _SMALLER.search(optimizer) else _KEPT.get(name)
    state = gradients_bytes * (kept + momentum) if kept is not None else 0
    return PlannedMemory(
        weights_bytes=weights_bytes, gradients_bytes=gradients_bytes, state_bytes=state, state_known=kept is not None
    )
