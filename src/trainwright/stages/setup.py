"""Stage 0, setup: the call that would start training with its arguments, or what stopped the script before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainwright.core.finding import Failure, Place
from trainwright.core.role import Role
from trainwright.core.stage import Facts, Stage
from trainwright.stages.words import Words


@dataclass(frozen=True, kw_only=True)
class Argument:
    """The effective value of a hyperparameter."""

    name: str
    value: Any
    given: bool
    """False: a default."""
    default: Any = None


@dataclass(frozen=True, kw_only=True)
class RefusedCall:
    """A call of a framework function that raised."""

    function: str
    """As people write it: `TrainingArguments`, `Trainer`."""
    argument: str
    """The argument name it does not accept; empty if it raised for another reason."""
    value: Any
    given: Mapping[str, Any]
    """All keywords of the call; values that are not plain are given by their type's name."""
    accepts: tuple[str, ...]
    """The parameter names that the installed version has."""
    library: str
    """Distribution and version: `transformers 5.23.0`."""
    failure: Failure
    places: Mapping[str, Place] = field(default_factory=dict)
    """Where each keyword of the call was written."""
    repairable: bool = True
    """False when the call cannot be made again, because it was seen only as an exception."""


@dataclass(frozen=True, kw_only=True)
class OverriddenMethod:
    """A framework method that the user's subclass overrides."""

    name: str
    missing: tuple[str, ...]
    """Arguments that the framework passes and the override does not accept."""
    where: Place | None


@dataclass(frozen=True, kw_only=True)
class IneffectiveFreeze:
    """An assignment of False to an attribute that freezes nothing, although its name says so."""

    attribute: str
    on_modules: bool
    """It was set on layers; False: on parameters, misspelled."""
    kind: str
    objects: int
    """How many objects of the model it was set on."""
    parameters: tuple[str, ...]
    """Names of the parameters there that still require a gradient."""
    where: Place
    after_compile: bool = False
    """It would freeze, had it been set before the training step was compiled; the parameters are those that a step
    was seen to change."""


@dataclass(frozen=True, kw_only=True)
class MissingName:
    """A name of an installed library that the script asked for in vain."""

    owner: str
    """The module; or the names of the object's classes, the narrowest first, joined by blanks."""
    name: str
    of_class: bool
    package: str
    library: str
    """Distribution and version: `transformers 5.23.0`."""
    near: tuple[str, ...] = ()
    """Similar names that the module has."""
    wanted_by: str = ""
    """The library whose code asked, if it was not the user's."""
    where: Place | None = None


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A file that the script will save its model to after training, and that the framework refuses by its name."""

    method: str
    """save, save_weights."""
    path: str
    taken_as: str
    """The path with an ending that is taken."""
    alone: bool = False
    """The path is written out in this call, and nowhere else in the script."""
    failure: Failure
    where: Place


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """What one of several processes was about to train with. Hashes are empty where there was nothing to hash."""

    rank: int
    world_size: int
    """How many processes the launcher started."""
    believed: int
    """How many processes this process counts: 1 if it runs as if it were alone."""
    rows: int | None = None
    """Of its training set."""
    batches: int | None = None
    """Of its loader."""
    sharded: bool = False
    """A sampler gives each rank a share of the rows."""
    samples: str = ""
    """Hash of some rows of the training set, at the same indices on each rank."""
    batch: str = ""
    """Hash of the first batch."""
    weights: str = ""
    """Hash of the weights; empty where the first rank's are sent to the others later."""
    random: str = ""
    """Hash of the state of torch's random numbers."""
    failure: str = ""
    """What ended it before training."""


@dataclass(frozen=True, kw_only=True)
class OtherProcess:
    """A process, not the script's own, that holds memory of an accelerator."""

    pid: int
    name: str
    held_bytes: int


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """A GPU that the training may use, by its driver's own list."""

    index: int
    name: str
    total_bytes: int
    others: tuple[OtherProcess, ...] = ()
    """The one that holds most first."""


@dataclass(frozen=True, kw_only=True)
class SetupFacts(Facts):
    """The state when training was about to start, or when the script ended without it."""

    stage = Stage.SETUP
    framework: str | None = None
    words: Words = field(default_factory=Words)
    """What the framework calls the things that rules speak of."""
    automatic_steps: bool = False
    """What is given the parts of the training calls backward, the optimizer and the schedule itself."""
    versions: Mapping[str, str] = field(default_factory=dict)
    call: str = ""
    """The call that would start training: `Trainer.train`; empty if none was reached."""
    failure: Failure | None = None
    """The exception that ended the script before training."""
    refused: RefusedCall | None = None
    missing: MissingName | None = None
    refused_files: tuple[RefusedFile, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """Hyper-parameters in force, by the framework's names (learning_rate, warmup_steps…)."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """The user's lines, by role (`core/role.py`), and of every argument by its name."""
    overrides: tuple[OverriddenMethod, ...] = ()
    model_class: str = ""
    loads_checkpoint: bool = False
    """The model's weights (at least of its base) were loaded from a checkpoint."""
    parameters: int = 0
    trainable_parameters: int = 0
    frozen_at: tuple[Place, ...] = ()
    """The user's lines that set requires_grad to False, the one that froze most parameters first."""
    ineffective_freezes: tuple[IneffectiveFreeze, ...] = ()
    device: str = "cpu"
    accelerators: tuple[Accelerator, ...] = ()
    """The GPUs that the script uses; empty where it uses none, or where no driver tells of them."""
    takes_all_memory: bool = False
    """The framework takes nearly all free memory of each of them when it first uses one."""
    precision: str = "fp32"
    """fp32, bf16 or fp16: what the forward pass runs in."""
    batch_size: int = 0
    accumulation: int = 1
    epochs: float | None = None
    planned_updates: int | None = None
    world_size: int = 1
    ranks: tuple[RankFacts, ...] = ()
    """Of several processes on this machine, each one's; empty where there is one."""

    def place(self, *roles: Role) -> Place | None:
        """The first known of the user's lines for these roles."""
        return next((self.places[r] for r in roles if r in self.places), None)
