"""Patches for training by a single call: transformers' and Lightning's Trainers, their arguments, Accelerate."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from trainwright.frameworks.packages import TrainingKind
from trainwright.seams.failures.blame import frames_of
from trainwright.seams.listening.doors import watch_door
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
        watch_door(module.Trainer, name, _call)
    watch_door(module.Trainer, "train", functools.partial(passed_on, TrainingKind.TRAINER))


def patch_lightning(module: Any) -> None:
    patch_construction(module.Trainer, "Trainer")
    watch_door(module.Trainer, "fit", functools.partial(passed_on, TrainingKind.LIGHTNING))


def passed_on(
    kind: TrainingKind, go_on: Any, trainer: Any, *args: Any, **kwargs: Any
) -> Any:  # inner watchers skip its frame
    """Train by a single call, and let the listener know."""
    frame = user_frame(sys._getframe(1))
    if not active() or frame is None:
        return go_on(trainer, *args, **kwargs)
    with listener().training(kind, trainer, frame):
        return go_on(trainer, *args, **kwargs)


def training_left_by(error: BaseException) -> tuple[TrainingKind, Any, FrameType] | None:
    """The kind of what trained when an exception left it, that itself, and the script's frame that called for the training."""
    left = (one.f_locals for one in frames_of(error) if one.f_code is passed_on.__code__)
    return next(((one["kind"], one["trainer"], one["frame"]) for one in left if one.get("frame") is not None), None)


def _call(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    frame = user_frame(sys._getframe(1))
    try:
        return go_on(self, *args, **kwargs)
    except Exception:
        if active() and frame is not None:
            listener().on_failed_call(self, frame)
        raise


def patch_construction(owner: Any, name: str) -> None:
    original = owner.__init__
    names = list(inspect.signature(original).parameters)[1:]

    def init(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        frame = builder_frame(self)
        if not active() or frame is None or (type(self).__name__ != name and _is_inner(self, original)):
            go_on(self, *args, **kwargs)
            return
        given = {**dict(zip(names, args)), **kwargs}
        for _ in range(8):  # a call may have several rejected arguments, each repaired in turn
            try:
                go_on(self, **given)
                break
            except Exception as error:
                other = listener().on_refusal(name, original, given, error, frame)
                if other is None:
                    raise
                given = dict(other)
        seen().constructions[id(self)] = construction_at(frame, name, given)

    watch_door(owner, "__init__", init)


def _is_inner(built: Any, original: Any) -> bool:
    """Whether this is a base class's constructor, called by one that is watched itself."""
    watched = type(built).__init__
    return getattr(watched, "__wrapped__", original) is not original
