"""Keras patches: models that a script compiles and fits, and the layers, optimizers and losses that it builds."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from trainwright.frameworks.packages import TrainingKind
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.doors import calling_frame, watch_door
from trainwright.seams.listening.refusals import arguments_of
from trainwright.seams.listening.seen import active, construction_at, keep_constructions, listener, seen
from trainwright.seams.source.places import place_of, places_on_the_way, user_frame


def patch_model(module: Any) -> None:
    """Report each `fit`, and record the arguments of `compile`."""
    owner = module.Model
    original = owner.fit

    def fit(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1))
        compiled = getattr(self, "compiled", False) or getattr(self, "_is_compiled", False)
        if not active() or frame is None or not compiled:  # the call's own error then says what is missing
            return go_on(self, *args, **kwargs)
        told = arguments_of("fit", original, self, frame, args, kwargs)
        with listener().training(TrainingKind.FIT, self, frame):
            return go_on(self, **told)

    watch_door(owner, "fit", fit)
    _patch_compile(owner)


def _patch_compile(model: Any) -> None:
    # Patched where it is defined: a model class that overrides compile is loaded without being compiled.
    owner = next(kind for kind in model.__mro__ if "compile" in vars(kind))
    original = owner.compile
    defaults = {n: p.default for n, p in inspect.signature(original).parameters.items()}

    def compile_model(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = user_frame(sys._getframe(1)) if active() else None
        if frame is None:
            return go_on(self, *args, **kwargs)
        given = told = arguments_of("compile", original, self, frame, args, kwargs)
        if calling_frame() is not frame:  # a library's compile, which forwards every argument
            told = {k: v for k, v in given.items() if v is not defaults.get(k)}
        seen().compiled[self] = construction_at(frame, "compile", told, told)
        return go_on(self, **given)

    watch_door(owner, "compile", compile_model)


def patch_layers(module: Any) -> None:
    """Record the line that built each layer, and the one that froze it."""
    owner = module.Layer

    def new(go_on: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        layer = go_on(cls, *args, **kwargs)
        if active() and (frame := user_frame(sys._getframe(1))) is not None:
            seen().modules[layer] = place_of(frame)
            seen().asked_at[layer] = tuple(places_on_the_way(frame))
        return layer

    # Not the constructor: Keras reads a layer's arguments from its signature.
    watch_door(owner, "__new__", new)
    trainable = owner.trainable

    def set_trainable(self: Any, value: bool) -> None:
        trainable.fset(self, value)
        # On the torch backend, an attribute tracker's frame is between this one and the script.
        if not value and active() and (place := next(places_on_the_way(sys._getframe(1)), None)) is not None:
            seen().frozen_layers[self] = place

    owner.trainable = trainable.setter(set_trainable)


def patch_optimizers(module: Any) -> None:
    """Record the line that built each optimizer, and what `train_on_batch` or manual steps trained before the check."""
    owner = module.BaseOptimizer
    keep_constructions(owner, "optimizers")

    def apply(go_on: Any, self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        if active():
            for variable in trainable_variables or self._trainable_variables:
                seen().gave_value(variable)
        return passed_on(go_on, self, grads, trainable_variables)

    watch_door(owner, "apply", apply)


def patch_variables(module: Any) -> None:
    """Record which variables were assigned values after creation."""

    def assign(go_on: Any, self: Any, value: Any) -> Any:
        if active():
            seen().gave_value(self)
        return passed_on(go_on, self, value)

    watch_door(module.Variable, "assign", assign)
