"""What the watchers of torch share: models, their recent calls, and the batches that loaders gave."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from trainwright.core import Place
from trainwright.rehearsal.record import Drawn, Floats, Integers, Output, Pass
from trainwright.rehearsal.recorder import EACH, Recorder
from trainwright.rehearsal.watch.torch.samples import fingerprint, holder_of, plain, version_of, weights_of

# Calls whose outputs are remembered, for a comparison or a loss that comes later, and the values of these in all.
RECENT_CALLS, RECENT_VALUES = 64, 8_000_000
# Batches that are remembered of each set, and in all: the training goes on with a batch drawn before an evaluation.
BATCHES, ALL_BATCHES = 8, 32
# A tensor with more values is remembered only as long as the script holds it.
MOST_HELD = 1_000_000
# Rows below which a call without gradients is small.
SMALL = 32
# Updates one after the other with calls of a model without gradients, after which they are no evaluation.
STREAK = 20


@dataclass(eq=False)
class Model:
    """A module that the script calls."""

    ref: weakref.ref[Any]
    number: int
    has_parameters: bool
    noisy_layers: list[weakref.ref[Any]]
    """Its layers that differ in training mode."""
    is_trained: bool = False
    takes_outputs: bool = False
    """Whether it was given what another model answered."""
    label_arguments: set[str] = field(default_factory=set)
    """The arguments that hold labels: it computes its own loss."""
    calls: int = 0
    passes: int = 0
    last: int = -1
    """The update of its last call without gradients."""
    streak: int = 0
    """Updates, one after the other, with such calls."""
    unkept: tuple[int, int] = (0, -1)
    """Passes that were not looked at, and the update of the last one."""
    open: tuple[int, int, Pass | None] | None = None
    """The evaluation pass under way: its update, its reading, and itself."""
    slots: dict[tuple[str, int], list[Any]] = field(default_factory=dict)
    """Places of the answers that met labels, by kind and width."""

    def count_unkept(self, update: int, times: int = 1) -> None:
        """Count passes that were not looked at; -1: the last one is, after all."""
        self.unkept = self.unkept[0] + times, update

    @property
    def is_noisy(self) -> bool:
        """Whether such layers are in training mode now: a loss that holds the model has a mode of its own."""
        return any((layer := ref()) is not None and layer.training for ref in self.noisy_layers)


def storage_of(tensor: Any) -> int:
    """A number of a tensor's memory, which views of it share."""
    return int(tensor.untyped_storage()._cdata)


@dataclass(eq=False)
class HeldTensor:
    """A tensor, held where it is small, otherwise only as long as the script holds it."""

    ref: Any
    storage: int
    """As `storage_of` tells them apart."""
    version: int
    shape: tuple[int, ...]
    _memory: StorageWeakRef
    """Keeps no values alive. As long as it is held, no other memory gets the same number, as that of large answers would
    soon."""

    @classmethod
    def of(cls, tensor: Any) -> HeldTensor:
        """Hold a tensor."""
        inner = plain(tensor)
        kept = inner if inner.numel() <= MOST_HELD else weakref.ref(tensor)
        memory = StorageWeakRef(inner.untyped_storage())
        return cls(kept, memory.cdata, version_of(inner), tuple(inner.shape), memory)

    def get(self) -> Any:
        """The tensor without its graph; None where it is gone or was changed in place."""
        found = self.ref() if isinstance(self.ref, weakref.ref) else self.ref
        if found is None or version_of(found) != self.version:
            return None
        return plain(found)

    @property
    def values(self) -> int:
        """Values that it keeps in memory."""
        return 0 if isinstance(self.ref, weakref.ref) else self.ref.numel()


@dataclass(eq=False)
class LoaderPass:
    """One reading of a loader, from its start."""

    number: int
    where: Place | None
    rows: deque[list[Any]] = field(default_factory=deque)
    """Rows that were asked for and have not come yet."""
    given: list[int] = field(default_factory=list)
    """Rows that came, as long as no training is known to have used them."""
    trains: bool = False
    evaluates: bool = False
    """Whether its batches met a model, and without gradients only."""

    def give(self, drawn: Drawn, numbers: list[int]) -> None:
        """Note rows that came."""
        if not self.trains:
            self.given += numbers
        if self.evaluates:
            drawn.evaluated.update(numbers)

    def meet(self, drawn: Drawn, trains: bool) -> None:
        """Note that a model was given a batch of it. What both a teacher and the training get is no evaluation."""
        if trains and not self.trains:
            if self.evaluates:
                drawn.evaluated.subtract(self.given)
            self.trains, self.evaluates = True, False
            self.given.clear()
        elif not trains and not self.trains and not self.evaluates:
            self.evaluates = True
            drawn.evaluated.update(self.given)


@dataclass(eq=False)
class LoaderBatch:
    """What a loader gave."""

    columns: dict[str, HeldTensor]
    drawn: Drawn | None
    numbers: list[int] | None
    of: LoaderPass | None
    """The reading that it belongs to."""
    rows: Any = None
    """The set itself."""
    iterator: weakref.ref[Any] | None = None
    """What reads the loader; it is gone when the reading is over."""

    @property
    def reading(self) -> int:
        """Which of the readings of a set it belongs to; 0: not known."""
        return self.of.number if self.of is not None else 0

    @property
    def is_under_way(self) -> bool:
        """Whether the reading that it belongs to goes on."""
        return self.iterator is not None and self.iterator() is not None

    def holds(self, storages: set[int]) -> bool:
        """Whether one of its tensors lies in one of these places of memory."""
        return any(h.storage in storages for h in self.columns.values())


@dataclass(eq=False)
class OuterCall:
    """One call of a model from outside."""

    model: Model
    update: int
    is_training: bool
    """Whether the model was in training mode."""
    is_noisy: bool
    """Whether layers of it were that differ in training mode."""
    rows: int
    inputs: list[tuple[str, HeldTensor]]
    outputs: list[tuple[str, HeldTensor]] = field(default_factory=list)
    grads: bool = False
    """Whether its answers have a graph."""
    is_trained_on: bool = False
    """Whether `backward` went through them: another loss of theirs, that none went through, is no evaluation."""
    nodes: tuple[int, ...] = ()
    """The numbers of its answers in the graph."""
    root: OuterCall | None = None
    """The call whose answers it was given."""
    batch: LoaderBatch | None = None
    made: Pass | None = None
    where: Place | None = None
    """The user's line; of calls without gradients."""
    read: tuple[Integers | None, Floats | None] | None = None
    """Keys and features of its rows, once they were asked for."""
    answered: set[Output] = field(default_factory=set)
    met: list[tuple[int, int, Output]] = field(default_factory=list)
    """Outputs that met labels: where their values are, where the labels' are."""

    @property
    def first(self) -> OuterCall:
        """The first of the calls that its inputs came through: what was given rows; or itself."""
        call = self
        while call.root is not None:
            call = call.root
        return call


class WatchState:
    """What the watchers of torch share."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.depth = 0
        self.has_passed = False
        """Whether the last call was passed over: an answer that no known call gave is its."""
        self.in_backward = False
        self.in_loss = 0
        self.in_gradient: list[Any] | None = None
        """What loss functions are given while `torch.func` takes a gradient (`handmade.py`)."""
        self.module: Any = None
        """The last module that was called meanwhile."""
        self.current: OuterCall | None = None
        self.recent: deque[OuterCall] = deque(maxlen=RECENT_CALLS)
        self.batches: list[LoaderBatch] = []
        self.read_by: dict[int, LoaderPass] = {}
        """The readings that evaluation passes belong to, by the pass's number."""
        self.labels: dict[Output, str] = {}
        """The column of the batches that holds an output's labels."""
        self.forms: dict[Output, str] = {}
        """How the outputs of training are read, as `meetings.py` names it."""
        self.models: dict[int, Model] = {}
        self.held: set[int] = set()
        """The parameters, by `id`, of optimizers that stepped."""
        self.due = True
        """Whether the update under way is looked at."""
        self._has_looked, self._last_look = False, 0
        """Whether the model was called in it, and the last update that was looked at."""
        self.managed = False
        """Whether a Trainer's training is under way, which says itself when it begins and ends."""
        self.tables: dict[str, Any] = {}
        """What a trainer was given, before it left out columns."""
        self.reads_ahead = False
        """Whether a loader draws a batch before the one in front of it was used, as Accelerate's and workers do."""
        self.is_paused = False
        """Whether what happens now is no part of the training, as Lightning's sanity check."""
        self._thread = threading.get_ident()
        self._remembered = 0

    def is_off(self) -> bool:
        """Whether what happens now is not looked at."""
        return (
            torch.compiler.is_compiling()  # first: the rest is not to be compiled
            or torch.jit.is_tracing()  # what is computed now becomes part of the trace
            or self.recorder.busy
            or self.recorder.keras_runs  # whose watcher looks by itself
            or self.is_paused
            or threading.get_ident() != self._thread
            or torch._C._functorch.peek_interpreter_stack() is not None
        )

    @property
    def update(self) -> int:
        """Updates made so far."""
        return self.recorder.record.updates

    def model_of(self, module: Any) -> Model:
        """What is known of a module that is called."""
        known = self.models.get(id(module))
        if known is not None and known.ref() is module:
            return known
        inner = unwrap_module(module)
        noisy = [
            weakref.ref(m)
            for m in inner.modules()
            if (isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0)
            or isinstance(m, torch.nn.modules.batchnorm._BatchNorm)
        ]
        has = next(inner.parameters(), None) is not None
        number = self.recorder.number_of(holder_of(inner)) if has else 0
        known = Model(weakref.ref(module), number, has, noisy)
        known.is_trained = bool(self.held) and any(id(p) in self.held for p in inner.parameters())
        self.models[id(module)] = known
        return known

    def models_with(self, parameters: set[int]) -> Iterator[Model]:
        """The models that were called and hold some of these parameters, by `id`."""
        for model in list(self.models.values()):
            module = model.ref()
            if module is not None and model.has_parameters and any(id(p) in parameters for p in module.parameters()):
                yield model

    def add_batch(self, batch: LoaderBatch) -> None:
        """Keep a batch that a loader gave, and let go of the oldest of the same set."""
        self.batches.append(batch)
        same = [b for b in self.batches if b.drawn is batch.drawn]
        if len(same) > BATCHES:
            self.batches.remove(same[0])
        del self.batches[:-ALL_BATCHES]

    def remember(self, call: OuterCall) -> None:
        """Keep a call for losses and comparisons to come, within the limit of memory."""
        self.recent.append(call)
        self._remembered += sum(h.values for _, h in (*call.inputs, *call.outputs))
        while self._remembered > RECENT_VALUES and len(self.recent) > 1:
            self.recent.popleft()
            self._remembered = sum(h.values for one in self.recent for _, h in (*one.inputs, *one.outputs))

    def end_update(self) -> None:
        """Let go of the calls before an update, and decide whether the next one is looked at."""
        self.recent.clear()
        self._remembered = 0
        coming = self.update + 2  # this update is counted afterwards
        if self._has_looked:  # several optimizers may step before the model is called again
            self._last_look, self._has_looked = coming - 1, False
        self.due = coming - self._last_look >= self.recorder.stride(coming)

    def note_look(self) -> None:
        """Note that the update under way is looked at, if it is."""
        self._has_looked = self._has_looked or self.due

    def is_passed_over(self, module: Any, args: Any) -> bool:
        """Whether a call is not looked at: a training call of an update that is not, one of a model that answers at
        each update (a teacher), or one of very many small calls, as those that act in reinforcement learning."""
        if self.batches and (drawn := self.batches[-1].drawn) is not None and not drawn.trains:
            return False
        if torch.is_grad_enabled():
            self.note_look()
            return not self.due and module.training
        known = self.models.get(id(module))
        if known is None:
            return False
        is_first = known.last != self.update
        if is_first:
            known.streak = known.streak + 1 if known.last == self.update - 1 else 0
            known.last = self.update
        if known.streak > STREAK and not self.due:
            if is_first and not self.batches:
                known.count_unkept(self.update)
            return True
        if known.calls < EACH or self.recorder.is_due(known.calls):
            return False
        shape = getattr(args[0], "shape", None) if args else None
        if not shape or shape[0] >= SMALL:
            return False
        known.calls += 1
        return True


def unwrap_module(module: Any) -> Any:
    """The user's module in what torch.compile, DataParallel and DistributedDataParallel made of it."""
    for _ in range(4):
        inner = module._modules.get("_orig_mod") or (
            module._modules.get("module") if "Parallel" in type(module).__name__ else None
        )
        if inner is None:
            break
        module = inner
    return module


def weights_fingerprint(module: Any) -> float:
    """The fingerprint of a module's weights."""
    return fingerprint(weights_of(unwrap_module(module)))
