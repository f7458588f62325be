"""The calls of frameworks that a script makes on its way to training, seen as they happen.

Patches are put in when a framework is imported, before the script gets hold of its names, and pass everything
through unless somebody listens.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import wrapt

from trainwright.core.finding import Place
from trainwright.seams.place import place_of, places_on_the_way, user_frame
from trainwright.stages.setup import RankFacts


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A framework object that the script built: from which line, with which keywords."""

    name: str
    frame_file: str
    line: int
    place: Place
    keywords: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """A model that was loaded from a checkpoint."""

    source: str
    fresh: frozenset[str]
    """Names of parameters that the checkpoint did not hold."""
    unused: frozenset[str] = frozenset()
    """Names in the checkpoint that the model has no place for."""
    place: Place | None = None


class Listener(Protocol):
    """Who is told what a script does."""

    def refused(
        self,
        name: str,
        function: Callable[..., Any],
        keywords: Mapping[str, Any],
        error: Exception,
        frame: FrameType,
    ) -> Mapping[str, Any] | None:
        """A framework refused a construction; return other keywords to try, or None to let the error pass."""

    def training(self, trainer: Any, frame: FrameType, original: Callable[[], Any]) -> Any:
        """The script calls for training."""

    def looping(self, frame: FrameType) -> None:
        """Something was done that a training step does: a loader was begun, a model called, backward run."""

    def fitting(
        self, trainer: Any, frame: FrameType, given: Mapping[str, Any], original: Callable[[], Any]
    ) -> Any:
        """The script calls `fit` of a Lightning Trainer, with these arguments."""

    def call_failed(self, trainer: Any, name: str, error: Exception, frame: FrameType) -> None:
        """A call on the trainer before training (evaluate, predict) raised."""

    def in_child(self, work: Callable[[], Any]) -> None:
        """Do the work of a process that the script started for training."""

    def children_ended(self) -> None:
        """The processes that the script started for training have ended."""


@dataclass
class Seen:
    """What the script built so far, by object; nothing is kept alive."""

    constructions: dict[int, Construction] = field(default_factory=dict)
    loadings: weakref.WeakKeyDictionary[Any, Loading] = field(default_factory=weakref.WeakKeyDictionary)
    modules: weakref.WeakKeyDictionary[Any, Place] = field(default_factory=weakref.WeakKeyDictionary)
    asked_at: weakref.WeakKeyDictionary[Any, tuple[Place, ...]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    """The user's lines on the way to a module's construction, the nearest first."""
    optimizers: weakref.WeakKeyDictionary[Any, Construction] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    schedules: weakref.WeakKeyDictionary[Any, Construction] = field(default_factory=weakref.WeakKeyDictionary)
    loaders: dict[int, Construction] = field(default_factory=dict)
    """The first loader that was built of each data set, by the data set's identity."""
    stilled: weakref.WeakKeyDictionary[Any, Place] = field(default_factory=weakref.WeakKeyDictionary)
    """Modules in evaluation mode, and the user's line that put them there."""
    trained: set[int] = field(default_factory=set)
    frozen: dict[int, tuple[weakref.ref[Any], Place]] = field(default_factory=dict)
    """Parameters whose requires_grad was set to False, by identity, and the line that did it."""
    ranks: tuple[RankFacts, ...] = ()
    """What the processes of a distributed training have each; empty where there is one."""
    misspelt: list[tuple[weakref.ref[Any], str, Place]] = field(default_factory=list)
    """Objects that were given an attribute which looks as if it froze them and does not, its name, the line."""

    def frozen_at(self, parameter: Any) -> Place | None:
        """The line that froze a parameter."""
        reference, place = self.frozen.get(id(parameter), (None, None))
        return place if reference is not None and reference() is parameter else None

    def freezing_lines(self) -> tuple[Place, ...]:
        """The lines that froze what is frozen now, the one that froze most first."""
        alive = [(p, place) for reference, place in self.frozen.values() if (p := reference()) is not None]
        return tuple(
            place for place, _ in Counter(place for p, place in alive if not p.requires_grad).most_common()
        )

    def is_fresh(self, model: Any, name: str) -> bool | None:
        """Whether no checkpoint that was loaded held a parameter; None where none was loaded."""
        known = [(n, self.loadings[m]) for n, m in model.named_modules() if m in self.loadings]
        inside = [(n, one) for n, one in known if not n or name.startswith(f"{n}.")]
        if not known:
            return None
        return all(name[len(n) + 1 if n else 0 :] in one.fresh for n, one in inside) if inside else True


# difflib's ratio of require_grad, requires_grads, require_gradient, requires_gradient to requires_grad is 0.83 to 0.96.
LOOKS_LIKE = 0.8

_listener: Listener | None = None
_seen = Seen()
_quiet = False


def seen() -> Seen:
    """What the script built since listening began."""
    return _seen


@contextmanager
def listening(listener: Listener) -> Iterator[Seen]:
    """Tell a listener of the calls that scripts make, while the context lasts."""
    global _listener, _seen
    _install()
    before, _listener, _seen = (_listener, _seen), listener, Seen()
    try:
        yield _seen
    finally:
        _listener, _seen = before


@contextmanager
def quiet() -> Iterator[None]:
    """Let every call pass unseen: what happens now is the walk's own doing."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


def _active() -> bool:
    return _listener is not None and not _quiet


@functools.cache
def _install() -> None:
    for module, patch in (
        ("torch.nn.modules.module", _patch_modules),
        ("torch.optim.optimizer", _patch_optimizers),
        ("torch.optim.lr_scheduler", _patch_schedules),
        ("torch.utils.data.dataloader", _patch_loaders),
        ("torch.autograd", _patch_backward),
        ("torch.multiprocessing.spawn", _patch_processes),
        ("transformers.modeling_utils", _patch_loading),
        ("transformers.training_args", _patch_arguments),
        ("transformers.training_args_seq2seq", _patch_seq2seq_arguments),
        ("transformers.trainer", _patch_trainer),
        ("accelerate.accelerator", _patch_accelerator),
        ("lightning.pytorch.trainer.trainer", _patch_lightning),
        ("pytorch_lightning.trainer.trainer", _patch_lightning),
    ):
        wrapt.register_post_import_hook(patch, module)


def _patch_modules(module: Any) -> None:
    original = module.Module.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if _active():
            frame = _builder_frame(self)
            if frame is not None:
                _seen.modules[self] = place_of(frame)
                _seen.asked_at[self] = tuple(places_on_the_way(frame))

    module.Module.__init__ = init
    module.register_module_forward_pre_hook(_called)
    _patch_state(module.Module)
    _patch_modes(module.Module)
    _patch_freezing(sys.modules["torch.nn.parameter"].Parameter, module.Module)


def _called(module: Any, args: Any) -> None:
    """A model is called; where it would be trained, that is part of a training step."""
    if not _active() or not _seen.optimizers:
        return
    if module.training and sys.modules["torch"].is_grad_enabled():
        _looping()


def _patch_state(owner: Any) -> None:
    original = owner.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, state, *args, **kwargs)
        if _active() and (frame := user_frame(sys._getframe(1))) is not None and self not in _seen.loadings:
            fresh = frozenset(getattr(result, "missing_keys", ()))
            _seen.loadings[self] = Loading(source="load_state_dict", fresh=fresh, place=place_of(frame))
        return result

    owner.load_state_dict = load_state_dict


def _patch_modes(owner: Any) -> None:
    original = owner.train

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if _active():
            if mode:
                _seen.stilled.pop(self, None)
            elif (frame := user_frame(sys._getframe(1))) is not None:
                _seen.stilled[self] = place_of(frame)
        return original(self, mode)

    owner.train = train


def _patch_freezing(parameter: Any, module: Any) -> None:
    """Keep which line froze a parameter; a layer's `requires_grad` attribute and slips of that name freeze nothing."""
    write, switch, set_member = parameter.__setattr__, parameter.requires_grad_, module.__setattr__

    def parameter_setattr(self: Any, name: str, value: Any) -> None:
        write(self, name, value)
        if value is False and name.startswith("req") and _active():
            _note_frozen(self, name)

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        result = switch(self, requires_grad)
        if not requires_grad and _active():
            _note_frozen(self, "requires_grad")
        return result

    @functools.wraps(set_member)
    def module_setattr(self: Any, name: str, value: Any) -> None:
        set_member(self, name, value)
        if value is False and name.startswith("req") and _active():
            _note(self, name)

    parameter.__setattr__, parameter.requires_grad_, module.__setattr__ = (
        parameter_setattr, functools.wraps(switch)(requires_grad_), module_setattr,
    )  # fmt: skip


def _note_frozen(parameter: Any, name: str) -> None:
    frame = user_frame(sys._getframe(2))
    if name != "requires_grad":
        _note(parameter, name)
    elif frame is not None:
        _seen.frozen[id(parameter)] = (weakref.ref(parameter), place_of(frame))


def _note(owner: Any, name: str) -> None:
    frame = user_frame(sys._getframe(2))
    if frame is not None and difflib.SequenceMatcher(None, name, "requires_grad").ratio() > LOOKS_LIKE:
        _seen.misspelt.append((weakref.ref(owner), name, place_of(frame)))


def _patch_optimizers(module: Any) -> None:
    _keep_constructions(module.Optimizer, lambda: _seen.optimizers)


def _patch_schedules(module: Any) -> None:
    _keep_constructions(module.LRScheduler, lambda: _seen.schedules)
    _keep_constructions(module.ReduceLROnPlateau, lambda: _seen.schedules)


def _keep_constructions(owner: Any, kept: Callable[[], weakref.WeakKeyDictionary[Any, Construction]]) -> None:
    """Note the user's line that built each object of a class."""
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = _builder_frame(self) if _active() else None
        if frame is not None:
            kept()[self] = _construction(self, frame)

    owner.__init__ = init


def _keep_loaders(owner: Any) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = _builder_frame(self) if _active() else None
        if frame is not None:
            _seen.loaders.setdefault(id(self.dataset), _construction(self, frame))

    owner.__init__ = init


def _construction(built: Any, frame: FrameType) -> Construction:
    return Construction(name=type(built).__name__, frame_file=frame.f_code.co_filename, line=frame.f_lineno,
                        place=place_of(frame), keywords=frozenset())  # fmt: skip


_on_loader: list[Callable[[Any], None]] = []
_on_batch: list[Callable[[Any, Callable[[], Any]], Any]] = []


@contextmanager
def watching_loaders(begun: Callable[[Any], None],
                     batch: Callable[[Any, Callable[[], Any]], Any] = lambda iterator, draw: draw()) -> Iterator[None]:  # fmt: skip
    """While the context lasts, be told of each loader that is begun, and hand out its batches.

    Args:
        batch: is given the loader's iterator and how its next batch is drawn, and returns what is handed out.
    """
    _on_loader.append(begun)
    _on_batch.append(batch)
    try:
        yield
    finally:
        _on_loader.pop()
        _on_batch.pop()


_on_backward: list[Callable[[], None]] = []


@contextmanager
def watching_backward(begun: Callable[[], None]) -> Iterator[None]:
    """Be told of each backward pass while the context lasts."""
    _on_backward.append(begun)
    try:
        yield
    finally:
        _on_backward.pop()


def _patch_loaders(module: Any) -> None:
    _keep_loaders(module.DataLoader)
    begin, draw = module.DataLoader.__iter__, module._BaseDataLoaderIter.__next__

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        for told in _on_loader:
            told(self)
        _looping()
        return begin(self)

    @functools.wraps(draw)
    def next_batch(self: Any) -> Any:
        if _on_batch:
            return _on_batch[-1](self, functools.partial(draw, self))
        return draw(self)

    module.DataLoader.__iter__ = begun
    module._BaseDataLoaderIter.__next__ = next_batch


def _patch_backward(module: Any) -> None:
    for name in ("backward", "grad"):
        original = getattr(module, name)

        @functools.wraps(original)
        def call(*args: Any, _original: Any = original, **kwargs: Any) -> Any:
            for told in _on_backward:
                told()
            _looping()
            if _on_backward and _original.__name__ == "grad" and _is_step_by_hand(*args, **kwargs):
                return _by_backward(_original, *args, **kwargs)
            return _original(*args, **kwargs)

        setattr(module, name, call)


def _is_step_by_hand(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None,
                     create_graph: bool = False, *_: Any, **more: Any) -> bool:  # fmt: skip
    """Whether torch.autograd.grad is asked for what a step by hand needs: a loss's gradient at the parameters."""
    asked = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    if create_graph or grad_outputs is not None or any(more.values()) or not hasattr(outputs, "backward"):
        return False
    own = sys.modules["torch"].nn.Parameter
    return all(t.is_leaf for t in asked) and (len(asked) > 1 or any(isinstance(t, own) for t in asked))


def _by_backward(original: Any, outputs: Any, inputs: Any, *_: Any, **more: Any) -> Any:
    """The gradients as they are asked for, then by a backward pass as well: that is what is measured."""
    found = original(outputs, inputs, retain_graph=True)
    asked = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for tensor in asked:
        tensor.grad = None
    outputs.backward(inputs=asked, retain_graph=more.get("retain_graph"))
    return found


def _patch_processes(module: Any) -> None:
    """Processes that a script starts for training are forked, so that what they do is seen too."""
    original = module.start_processes

    @functools.wraps(original)
    def start_processes(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                        start_method: str = "spawn") -> Any:  # fmt: skip
        if not _active() or _on_accelerator():
            return original(fn, args, nprocs, join, daemon, start_method)
        result = original(functools.partial(_work, fn), args, nprocs, join, daemon, "fork")
        if join:
            assert _listener is not None
            _listener.children_ended()
        return result

    module.start_processes = start_processes


def _on_accelerator() -> bool:
    """Whether this process holds a GPU: it cannot be forked then."""
    return bool(sys.modules["torch"].cuda.is_initialized())


def _work(fn: Any, rank: int, *args: Any) -> None:
    assert _listener is not None
    _listener.in_child(functools.partial(fn, rank, *args))


def _looping() -> None:
    if _active() and (frame := user_frame(sys._getframe(2))) is not None:
        assert _listener is not None
        _listener.looping(frame)


def _builder_frame(built: Any) -> FrameType | None:
    """The user's frame that asked for an object: not one of its own constructors."""
    frame = user_frame(sys._getframe(2))
    while frame is not None and frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is built:
        frame = user_frame(frame.f_back) if frame.f_back else None
    return frame


def _patch_loading(module: Any) -> None:
    original = module.PreTrainedModel.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not _active() or kwargs.get("output_loading_info"):
            return original(cls, *args, **kwargs)
        frame = user_frame(sys._getframe(1))
        result = original(cls, *args, **{**kwargs, "output_loading_info": True})
        model, info = result if isinstance(result, tuple) else (result, {})
        read = info.get if isinstance(info, Mapping) else functools.partial(getattr, info)
        _seen.loadings[model] = Loading(
            source=str(args[0] if args else kwargs.get("pretrained_model_name_or_path", "")),
            fresh=frozenset(read("missing_keys", ())) | _first_of_each(read("mismatched_keys", ())),
            unused=frozenset(read("unexpected_keys", ())),
            place=place_of(frame) if frame else None,
        )
        if frame is not None:
            _seen.modules[model] = place_of(frame)
        return model

    module.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def _first_of_each(keys: Any) -> frozenset[str]:
    return frozenset(k[0] if isinstance(k, tuple) else k for k in keys)


def _patch_arguments(module: Any) -> None:
    _patch_construction(module.TrainingArguments, "TrainingArguments")


def _patch_seq2seq_arguments(module: Any) -> None:
    _patch_construction(module.Seq2SeqTrainingArguments, "Seq2SeqTrainingArguments")


def _patch_accelerator(module: Any) -> None:
    _patch_construction(module.Accelerator, "Accelerator")


def _patch_trainer(module: Any) -> None:
    _patch_construction(module.Trainer, "Trainer")
    for name in ("evaluate", "predict"):
        _patch_call(module.Trainer, name)
    original = module.Trainer.train

    @functools.wraps(original)
    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1))
        if not _active() or frame is None:
            return original(self, *args, **kwargs)
        assert _listener is not None
        return _listener.training(self, frame, functools.partial(original, self, *args, **kwargs))

    module.Trainer.train = train


def _patch_lightning(module: Any) -> None:
    _patch_construction(module.Trainer, "Trainer")
    original = module.Trainer.fit
    signature = inspect.signature(original)

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1))
        if not _active() or frame is None:
            return original(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs).arguments
        assert _listener is not None
        return _listener.fitting(self, frame, given, functools.partial(original, self, *args, **kwargs))

    module.Trainer.fit = fit


def _patch_call(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1))
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            if _active() and frame is not None and id(self) not in _seen.trained:
                assert _listener is not None
                _listener.call_failed(self, name, error, frame)
            raise

    setattr(owner, name, call)


def _patch_construction(owner: Any, name: str) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        frame = _builder_frame(self)
        if not _active() or frame is None or (type(self).__name__ != name and _is_inner(self, original)):
            original(self, *args, **kwargs)
            return
        names = list(inspect.signature(original).parameters)[1:]
        given = {**dict(zip(names, args)), **kwargs}
        for _ in range(8):  # a call may hold several refused arguments, each mended in turn
            try:
                original(self, **given)
                break
            except Exception as error:
                assert _listener is not None
                other = _listener.refused(name, original, given, error, frame)
                if other is None:
                    raise
                given = dict(other)
        _seen.constructions[id(self)] = Construction(
            name=name,
            frame_file=frame.f_code.co_filename,
            line=frame.f_lineno,
            place=place_of(frame),
            keywords=frozenset(given),
        )

    owner.__init__ = init


def _is_inner(built: Any, original: Any) -> bool:
    """Whether this is a base class's constructor, called by one that is watched itself."""
    watched = type(built).__init__
    return getattr(watched, "__wrapped__", original) is not original
