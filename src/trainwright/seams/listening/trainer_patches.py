"""Patches for training by a single call: transformers' and Lightning's Trainers, their arguments, Accelerate."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from trainwright.seams.listening.seen import Loading, active, builder_frame, construction_at, listener, seen
from trainwright.seams.source.places import place_of, user_frame


def patch_loading(module: Any) -> None:
    original = module.PreTrainedModel.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not active() or kwargs.get("output_loading_info"):
            return original(cls, *args, **kwargs)
        frame = user_frame(sys._getframe(1))
        result = original(cls, *args, **{**kwargs, "output_loading_info": True})
        model, info = result if isinstance(result, tuple) else (result, {})
        read = info.get if isinstance(info, Mapping) else functools.partial(getattr, info)
        fresh = frozenset(read("missing_keys", ())) | {
            k[0] if isinstance(k, tuple) else k for k in read("mismatched_keys", ())
        }
        seen().loadings[model] = Loading(fresh=fresh)
        if frame is not None:
            seen().modules[model] = place_of(frame)
        return model

    module.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def patch_trainer(module: Any) -> None:
    patch_construction(module.Trainer, "Trainer")
    for name in ("evaluate", "predict"):
        patch_call(module.Trainer, name)
    original = module.Trainer.train

    @functools.wraps(original)
    def passed_on(self: Any, *args: Any, **kwargs: Any) -> Any:  # inner watchers skip its frame
        frame = user_frame(sys._getframe(1))
        if not active() or frame is None:
            return original(self, *args, **kwargs)
        return listener().on_train(self, frame, functools.partial(original, self, *args, **kwargs))

    module.Trainer.train = passed_on


def patch_lightning(module: Any) -> None:
    patch_construction(module.Trainer, "Trainer")
    original = module.Trainer.fit
    signature = inspect.signature(original)

    @functools.wraps(original)
    def passed_on(self: Any, *args: Any, **kwargs: Any) -> Any:  # inner watchers skip its frame
        frame = user_frame(sys._getframe(1))
        if not active() or frame is None:
            return original(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs).arguments
        return listener().on_fit(self, frame, given, functools.partial(original, self, *args, **kwargs))

    module.Trainer.fit = passed_on


def patch_call(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1))
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            if active() and frame is not None:
                listener().on_failed_call(self, name, error, frame)
            raise

    setattr(owner, name, call)


def patch_construction(owner: Any, name: str) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        frame = builder_frame(self)
        if not active() or frame is None or (type(self).__name__ != name and _is_inner(self, original)):
            original(self, *args, **kwargs)
            return
        names = list(inspect.signature(original).parameters)[1:]
        given = {**dict(zip(names, args)), **kwargs}
        for _ in range(8):  # a call may have several rejected arguments, each repaired in turn
            try:
                original(self, **given)
                break
            except Exception as error:
                other = listener().on_refusal(name, original, given, error, frame)
                if other is None:
                    raise
                given = dict(other)
        seen().constructions[id(self)] = construction_at(frame, name, given)

    owner.__init__ = init


def _is_inner(built: Any, original: Any) -> bool:
    """Whether this is a base class's constructor, called by one that is watched itself."""
    watched = type(built).__init__
    return getattr(watched, "__wrapped__", original) is not original
