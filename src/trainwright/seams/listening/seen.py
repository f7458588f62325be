"""What a script built on its way to training, and the listener to report to; filled in by the patches.

Patches pass everything through unless there is a listener (`active`).
"""

from __future__ import annotations

import ast
import inspect
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import place_of, user_frame
from trainwright.seams.source.written import End, call_end, call_node
from trainwright.stages import RankFacts, UnmatchedCheckpoint
from trainwright.tensors.torch.transforms import within_transform

V = TypeVar("V")


class WeakIdentityDictionary(MutableMapping[Any, V], Generic[V]):
    """Values by object; an object's value is dropped with it.

    A torchmetrics metric's hash depends on its state, which is missing during construction and changes later; the
    script's objects may have any hash. None of their code runs here.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], V]] = {}

    def __getitem__(self, key: Any) -> V:
        reference, value = self._held[id(key)]
        if reference() is not key:
            raise KeyError(id(key))
        return value

    def __setitem__(self, key: Any, value: V) -> None:
        number, held = id(key), self._held

        def gone(reference: weakref.ref[Any]) -> None:
            if number in held and held[number][0] is reference:
                del held[number]

        held[number] = (weakref.ref(key, gone), value)

    def __delitem__(self, key: Any) -> None:
        self[key]
        del self._held[id(key)]

    def __contains__(self, key: object) -> bool:
        found = self._held.get(id(key))
        return found is not None and found[0]() is key

    def __iter__(self) -> Iterator[Any]:
        alive = (reference() for reference, _ in list(self._held.values()))
        yield from (key for key in alive if key is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A framework object that the script built: its line and keywords."""

    name: str
    frame_file: str
    line: int
    place: Place
    keywords: frozenset[str]
    end: End | None = None
    """The end of the call that built it, if known."""
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values of the arguments, if they are recorded."""


def construction_at(
    frame: FrameType, name: str, keywords: Iterable[str] = (), given: Mapping[str, Any] | None = None
) -> Construction:
    """The construction by the call that a user's frame is at."""
    return Construction(
        name=name,
        frame_file=frame.f_code.co_filename,
        line=frame.f_lineno,
        place=place_of(frame),
        keywords=frozenset(keywords),
        end=call_end(frame),
        given=given or {},
    )


@dataclass(frozen=True, kw_only=True)
class Loading:
    """What a model was loaded with."""

    fresh: frozenset[str]
    """Names of parameters missing from the checkpoint."""
    names: frozenset[str] = frozenset()
    """Names of the parameters that the model had then; empty if that was not recorded."""
    ids: frozenset[int] = frozenset()
    """Their identities."""

    def of(self, model: Any) -> Loading:
        """The same, with the parameters that the model has now."""
        had = dict(model.named_parameters())
        return replace(self, names=frozenset(had), ids=frozenset(map(id, had.values())))

    def is_fresh(self, name: str, parameter: Any) -> bool:
        """Whether the checkpoint did not contain a parameter: it lacked it, or the model got it later, to train it."""
        later = bool(self.names) and name not in self.names and id(parameter) not in self.ids
        return name in self.fresh or (later and parameter.requires_grad)


class Listener(Protocol):
    """Receives reports of a script's actions."""

    def on_refusal(
        self, name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception, frame: FrameType
    ) -> Mapping[str, Any] | None:
        """A framework rejected a construction; return other keywords to try, or None to let the error propagate."""

    def training(self, kind: TrainingKind, trainer: Any, frame: FrameType) -> AbstractContextManager[Any]:
        """The script calls for a training, which is made in the context."""

    def on_loop(self, frame: FrameType, *, backward: bool = False) -> None:
        """A backward pass runs, or an optimizer steps."""

    def on_failed_call(self, trainer: Any, frame: FrameType) -> None:
        """A call on the trainer before training (evaluate, predict) raised."""

    def unsupported(self, why: str) -> None:
        """The script starts something to be checked with a framework that is too old for it."""

    def in_child(self, work: Callable[[], Any]) -> None:
        """Do the work of a process that the script started for training."""

    def children_ended(self) -> None:
        """The processes that the script started for training have ended."""


@dataclass
class BuiltObjects:
    """What the script built so far, by object; keeps no object alive."""

    constructions: dict[int, Construction] = field(default_factory=dict)
    loadings: WeakIdentityDictionary[Loading] = field(default_factory=WeakIdentityDictionary)
    """Of each model loaded from a checkpoint, the names of the parameters missing from that."""
    modules: WeakIdentityDictionary[Place] = field(default_factory=WeakIdentityDictionary)
    asked_at: WeakIdentityDictionary[tuple[Place, ...]] = field(default_factory=WeakIdentityDictionary)
    """The user's lines that led to a module's construction, the nearest first."""
    optimizers: WeakIdentityDictionary[Construction] = field(default_factory=WeakIdentityDictionary)
    schedules: WeakIdentityDictionary[Construction] = field(default_factory=WeakIdentityDictionary)
    loaders: dict[int, Construction] = field(default_factory=dict)
    """The first loader built for each dataset, by the dataset's id."""
    stilled: WeakIdentityDictionary[Place] = field(default_factory=WeakIdentityDictionary)
    """Modules in evaluation mode, and the user's line responsible."""
    frozen: dict[int, tuple[weakref.ref[Any], Place]] = field(default_factory=dict)
    """Parameters whose requires_grad was set to False, by id, and the line responsible."""
    losses: WeakIdentityDictionary[Construction] = field(default_factory=WeakIdentityDictionary)
    callbacks: WeakIdentityDictionary[Construction] = field(default_factory=WeakIdentityDictionary)
    compiled: WeakIdentityDictionary[Construction] = field(default_factory=WeakIdentityDictionary)
    """The last call of each model's `compile`."""
    frozen_layers: WeakIdentityDictionary[Place] = field(default_factory=WeakIdentityDictionary)
    """Layers whose trainable was set to False, and the line responsible."""
    valued: dict[int, weakref.ref[Any]] = field(default_factory=dict)
    """Variables that were assigned values after creation, by id: by an update, or from a file."""
    ranks: tuple[RankFacts, ...] = ()
    """Facts about each process of a distributed training; empty if there is only one."""
    unmatched: WeakIdentityDictionary[UnmatchedCheckpoint] = field(default_factory=WeakIdentityDictionary)
    """What the last load of a state dict into each model matched, if that was hardly anything."""
    trained_earlier: WeakIdentityDictionary[bool] = field(default_factory=WeakIdentityDictionary)
    """Parameters that a training before the checked one has trained, and the loaders that it drew from."""
    refused: tuple[Exception, Any] | None = None
    """What a framework's constructor raised last for its arguments, and the facts of that call."""
    misspelt: list[tuple[weakref.ref[Any], str, Place]] = field(default_factory=list)
    """Objects with an assigned attribute that looks like freezing but is not, its name, and the line."""

    def copy(self) -> BuiltObjects:
        """The record as it is now."""
        copied = BuiltObjects()
        for name, value in vars(self).items():
            held = getattr(copied, name)
            held.update(value) if isinstance(held, MutableMapping) else setattr(
                copied, name, value[:] if isinstance(value, list) else value
            )
        return copied

    def frozen_at(self, parameter: Any) -> Place | None:
        """The line that froze a parameter."""
        reference, place = self.frozen.get(id(parameter), (None, None))
        return place if reference is not None and reference() is parameter else None

    def gave_value(self, variable: Any) -> None:
        """Record that a variable was assigned a value other than its initial one."""
        self.valued[id(variable)] = weakref.ref(variable)

    def is_as_drawn(self, variable: Any) -> bool:
        """Whether a variable still has its initial value."""
        reference = self.valued.get(id(variable))
        return reference is None or reference() is not variable

    def position_given(self, optimizer: Any, argument: str) -> int | None:
        """An argument's position in the call that built an optimizer, if it was passed by position."""
        built = self.optimizers.get(optimizer)
        call = call_node(built.frame_file, built.line, built.name, end=built.end) if built else None
        names = list(inspect.signature(type(optimizer)).parameters)
        if call is None or argument not in names or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        position = names.index(argument)
        return position if position < len(call.args) else None

    def freezing_lines(self) -> tuple[Place, ...]:
        """The lines that froze what is frozen now, the one that froze most first."""
        alive = [(p, place) for reference, place in self.frozen.values() if (p := reference()) is not None]
        return tuple(place for place, _ in Counter(place for p, place in alive if not p.requires_grad).most_common())

    def is_fresh(self, model: Any, name: str, parameter: Any) -> bool | None:
        """Whether no loaded checkpoint contained a parameter; None if none was loaded."""
        known = [(n, self.loadings[m]) for n, m in model.named_modules() if m in self.loadings]
        inside = [(n, one) for n, one in known if not n or name.startswith(f"{n}.")]
        if not known:
            return None
        return all(one.is_fresh(name[len(n) + 1 if n else 0 :], parameter) for n, one in inside)


_listener: Listener | None = None
_seen = BuiltObjects()
_quiet = False


def seen() -> BuiltObjects:
    """What the script built since listening began."""
    return _seen


def listener() -> Listener:
    """The current listener; only while `active`."""
    assert _listener is not None
    return _listener


def active() -> bool:
    """Whether the script is running and there is a listener."""
    return _listener is not None and not _quiet


def is_quiet() -> bool:
    """Whether what is called just now is the check's own."""
    return _quiet


@contextmanager
def told(to: Listener) -> Iterator[BuiltObjects]:
    """Report scripts' calls to a listener while the context lasts, with a new record of what they build."""
    global _listener, _seen
    before, _listener, _seen = (_listener, _seen), to, BuiltObjects()
    try:
        yield _seen
    finally:
        _listener, _seen = before


@contextmanager
def quiet() -> Iterator[None]:
    """Hide all calls inside: they are the check's own."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


def looping(*, backward: bool = False) -> None:
    """Report to the listener that a patch's caller begins a backward pass or a step, with the user's frame."""
    if active() and not within_transform() and (frame := user_frame(sys._getframe(2))) is not None:
        listener().on_loop(frame, backward=backward)


def builder_frame(built: Any) -> FrameType | None:
    """The user's frame that asked a patch's caller for an object, skipping the object's own constructors."""
    frame = user_frame(sys._getframe(2))
    while frame is not None and frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is built:
        frame = user_frame(frame.f_back) if frame.f_back else None
    return frame


def keep_constructions(owner: Any, kept: str, of: Callable[[Any], Any] = lambda built: built) -> None:
    """Record the line that built each object of a class, by the object or what it is `of`, where `BuiltObjects` keeps such lines."""

    def init(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        go_on(self, *args, **kwargs)
        if active() and (frame := builder_frame(self)) is not None:
            getattr(seen(), kept).setdefault(of(self), construction_at(frame, type(self).__name__))

    watch_door(owner, "__init__", init)
