"""The calls of frameworks that a script makes on its way to training, seen as they happen.

Patches are put in when a framework is imported, before the script gets hold of its names, and pass everything
through unless somebody listens.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import wrapt

from trainwright.core.finding import Place
from trainwright.seams.place import place_of, user_frame


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
        self, name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception, frame: FrameType
    ) -> Mapping[str, Any] | None:
        """A framework refused a construction; return other keywords to try, or None to let the error pass."""

    def training(self, trainer: Any, frame: FrameType, original: Callable[[], Any]) -> Any:
        """The script calls for training."""

    def call_failed(self, trainer: Any, name: str, error: Exception, frame: FrameType) -> None:
        """A call on the trainer before training (evaluate, predict) raised."""


@dataclass
class Seen:
    """What the script built so far, by object; nothing is kept alive."""

    constructions: dict[int, Construction] = field(default_factory=dict)
    loadings: weakref.WeakKeyDictionary[Any, Loading] = field(default_factory=weakref.WeakKeyDictionary)
    modules: weakref.WeakKeyDictionary[Any, Place] = field(default_factory=weakref.WeakKeyDictionary)
    trained: set[int] = field(default_factory=set)


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
        ("transformers.modeling_utils", _patch_loading),
        ("transformers.training_args", _patch_arguments),
        ("transformers.training_args_seq2seq", _patch_seq2seq_arguments),
        ("transformers.trainer", _patch_trainer),
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

    module.Module.__init__ = init


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
        if not _active() or frame is None or type(self).__name__ != name and _is_inner(self, original):
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
