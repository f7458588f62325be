"""What is kept of the look at one training: its first step, its sets, and what is known of the trainings around it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from trainwright.adapters.torch.called_model import CalledModel
from trainwright.core import Facts, Place
from trainwright.look.called import LiveOptimizers, is_same
from trainwright.look.replay import Replay
from trainwright.look.row_form import CoarserLabels
from trainwright.look.sliced_rows import LoaderlessPass, Sliced
from trainwright.seams.torch.all_pairs import Pairing
from trainwright.seams.torch.gates import GateLog, Gates
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.observer import Observer
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import Mispaired


class Phase(IntEnum):
    """Where a look is."""

    WAITING = 0
    FIRST = 1
    """The observers stand, or stood, and the first update is not made."""
    SECOND = 2
    AFTER = 3


@dataclass(kw_only=True)
class Measured:
    """What is kept of the first step."""

    passed: GateLog
    step: StepRecord
    optimizers: list[Any]
    view: dict[str, Any]
    """The batch as the model and the loss were given it."""
    key: str | None
    """The name of its labels in the view."""
    probe: CalledModel | None = None
    gradients: dict[str, Any] = field(default_factory=dict)
    """As the first step used them."""
    suspects: dict[str, Any] = field(default_factory=dict)
    """Trained weights with equal rows, by name."""
    left: dict[str, Any] | None = None
    """The gradients of what its optimizer holds when a backward pass of the second update begins."""
    model: Any = None
    tokenizer: Any = None


@dataclass(frozen=True, kw_only=True)
class GivenBatch:
    """A batch that a loader has given."""

    columns: Mapping[str, torch.Tensor]
    """By name; by "0", "1" for a tuple."""
    is_mapping: bool
    numbers: Sequence[int] | None
    """Its rows in the set; None: unknown."""
    data: Any
    loader: Any
    """None: unknown."""


class Watched(Protocol):
    """What the run's watchers know."""

    def list_given(self) -> Sequence[GivenBatch]:
        """The batches that loaders have given last, the last one first."""

    def list_evaluated(self, training: int) -> Sequence[LoaderlessPass]:
        """What a training's model has answered without gradients and without a loader."""

    def count_planned(self, training: int) -> int | None:
        """How many updates a training was to make when it began; None: unknown."""

    def list_labels(self, training: int) -> Sequence[np.ndarray]:
        """The labels of a training's first calls."""


@dataclass(eq=False, kw_only=True)
class Sets:
    """A training's sets, before they are read."""

    data: Any
    """The training set."""
    label_names: Sequence[str]
    accepts: Sequence[str] | None = None
    """The columns that the model takes; None: all but the labels."""
    scope: Mapping[str, Any]
    tokenizer: Any
    checkpoint: str = ""
    """What the model was loaded from; empty: unknown."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """The training's lines, by their roles."""
    batch_size: int = 0
    drops_last: bool = False
    given: GivenBatch | None = None
    """The batch of the first step."""
    placed: Mapping[str, str] = field(default_factory=dict)
    """The name in the step of each column of the batch."""
    cut: CoarserLabels | None = None
    kind: Any
    """The training's, a `LoopTraining` (`of_loop.py`)."""
    mispaired: Mispaired | None = None
    sliced: Sliced | None = None
    """The arrays that the rows are cut from, without a loader."""
    watched: Watched | None = None
    training: int = 0
    held: list[tuple[Any, Mapping[str, Place], Callable[[], bool]]] = field(default_factory=list)
    """Sets that the model was evaluated on, each with its lines by their roles, and whether it is not trained on."""

    @property
    def names(self) -> Mapping[str, str]:
        """The names of items that have none."""
        if self.given is None or self.given.is_mapping:
            return {}
        return {**self.placed, **({self.cut.position: self.cut.name} if self.cut is not None else {})}


class Trainings(Protocol):
    """The looks at a script's trainings, as far as measuring one asks for what is around it (`look.py`)."""

    kind: Any
    """Of the training under way: a `LoopTraining` (`of_loop.py`)."""
    watched: Watched | None
    optimizers: LiveOptimizers
    done: list[Look]
    failed: Look | None
    """The training of which a step raised."""

    @property
    def number(self) -> int:
        """Of the training under way."""


@dataclass(eq=False)
class Look:
    """The look at one training."""

    phase: Phase = Phase.WAITING
    training: int = 0
    """The training's number; 0: no update was made."""
    model: Any = None
    """What holds all modules that are called."""
    observer: Observer | None = None
    graph: GraphWatch | None = None
    gates: Gates | None = None
    repaired: Observer | None = None
    """What keeps repairs in force behind the first step, and the same of the graph."""
    repaired_graph: GraphWatch | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    """What the model is called with, by name."""
    views: list[dict[str, Any]] = field(default_factory=list)
    """The same of further calls."""
    carried: list[str] = field(default_factory=list)
    """The names of later inputs that hang on a graph: what a step before left."""
    before: dict[str, Any] = field(default_factory=dict)
    """The trainable weights before the first update."""
    scope: dict[str, Any] = field(default_factory=dict)
    """The names that the user's lines around the step can use."""
    where: Place | None = None
    draws: int = 1
    """Micro-batches of the first update."""
    batches: int = 0
    """Batches of a pass over its loader; 0: unknown."""
    calls: int = 0
    """Calls of the first module before the first update."""
    loader: Any = None
    items: Any = None
    """The collator of its batches, which keeps their items."""
    is_open: bool = False
    is_settled: bool = False
    rates: list[float] = field(default_factory=list)
    schedules: list[Any] = field(default_factory=list)
    schedule_steps: int = 0
    is_schedule_first: bool = False
    schedule_first_at: Place | None = None
    updates: int = 0
    planned_updates: int | None = None
    """Updates that the whole training is to make, counted as `updates`; None: unknown."""
    version: int = 0
    """Of the weights at its begin."""
    began: float = field(default_factory=time.monotonic)
    is_still: bool = False
    """Whether the last call with gradients was made in evaluation mode, where the first step was not."""
    lost: tuple[str, ...] = ()
    """Modules that were in training mode at the first step, and are not in a later one."""
    lost_at: Any = None
    buffers: list[tuple[Any, Any]] = field(default_factory=list)
    """Each buffer of the model, and what it was at its begin."""
    broadcasts: Sequence[Pairing] = ()
    """Operations of the first step that paired each output with the targets of all rows."""
    replay: Replay = field(default_factory=Replay)
    """Its first steps, which can be made again behind the run."""
    sets: Sets | None = None
    """Its sets, to be read behind the run."""
    measured: Measured | None = None
    """What is kept of the first step, until the look is settled: afterwards nothing of the script's is held."""
    kind: Any = None
    """Of a training that is asked once more behind the run, a `LoopTraining` (`of_loop.py`); of others nothing is held."""
    root: Callable[[], Any] = lambda: None
    """The first of the modules that are called, as long as the script holds it; below: the model, the optimizers."""
    outer: Callable[[], Any] = lambda: None
    optimizers: list[weakref.ref[Any]] = field(default_factory=list)
    modes: dict[str, bool] = field(default_factory=dict)
    """The modes of the model's modules at the first step, if it was made in training mode."""
    facts: dict[type[Facts], Facts] = field(default_factory=dict)

    @property
    def roots(self) -> list[nn.Module]:
        """The modules that the training calls."""
        return self.observer.roots if self.observer is not None else []

    @property
    def step(self) -> StepRecord:
        """What the step's observer saw."""
        assert self.observer is not None
        return self.observer.record

    @property
    def passed(self) -> GateLog:
        """What reached the gates in the first update."""
        assert self.gates is not None
        return self.measured.passed if self.measured is not None else self.gates.passed

    def copy_weights(self) -> None:
        """Keep the model's weights and buffers as they are before an update."""
        self.version = self.count_changes()
        self.before = {name: p.detach().clone() for name, p in self.model.named_parameters() if p.requires_grad}
        self.buffers = [(buffer, buffer.detach().clone()) for buffer in self.model.buffers()]

    def list_start(self) -> list[tuple[Any, Any]]:
        """The trainable weights and the buffers, each with what it was then."""
        weights = [(p, self.before[name]) for name, p in self.model.named_parameters() if name in self.before]
        return weights + self.buffers

    def count_changes(self) -> int:
        """Changes with each change in place of the model's weights."""
        return sum(parameter._version for parameter in self.model.parameters())

    def note_parts(self) -> None:
        """Note what the further training is known by."""
        assert self.measured is not None and self.observer is not None
        self.root, self.outer = weakref.ref(self.roots[0]), weakref.ref(self.model)
        self.optimizers = [weakref.ref(one) for one in self.measured.optimizers]
        self.modes = self.step.modes if self.step.is_training else {}
        self.observer.forget()

    def retire_repairs(self) -> None:
        """Let repairs of the step have no effect from now on."""
        if self.repaired is not None and self.repaired_graph is not None:
            self.repaired.retire()
            self.repaired_graph.retire()

    def is_known(self, optimizer: Any) -> bool:
        """Whether an optimizer is one of this training's."""
        return any(is_same(optimizer, one) for ref in self.optimizers if (one := ref()) is not None)

    def settle(self) -> None:
        """Let go of all that is the script's: it may build a model after the other, and needs the memory."""
        self.model = self.observer = self.graph = self.gates = self.measured = self.loader = self.items = None
        self.inputs, self.views, self.schedules, self.buffers, self.is_settled = {}, [], [], [], True

    def has_passed(self, kind: str) -> bool:
        """Whether a call of this kind came since the update before."""
        return self.gates is not None and kind in self.gates.passed.calls
