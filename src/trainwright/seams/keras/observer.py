"""Keras's seams: observes one training step on any backend, and applies repairs at losses and activations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainwright.core import Call, Failure, Place, Repair, Seam, Stage
from trainwright.probes.forward import activation_shares
from trainwright.probes.losses import unreachable_share
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.keras.layers import (
    KINDS,
    LAYERS,
    Modes,
    activation_name,
    activation_of,
    declared_sizes,
    of_activation,
)
from trainwright.seams.keras.loss import KeptLoss, LossKind, kind_of, measure_call, with_kind
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.listening.doors import replaced
from trainwright.seams.source.places import is_users, user_frame, user_place
from trainwright.seams.source.written import is_written
from trainwright.stages import ModuleFacts, Origin
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

# Step functions.
_DISCRETE = {"argmax", "argmin", "round", "sign", "floor", "ceil"}
# Layers that only move numbers: their output is still the result of the preceding activation.
_MOVERS = ("Reshape", "Flatten", "Permute")


@dataclass(frozen=True)
class _Activated:
    output: Any
    function: str
    where: Place | None
    module: str


class Observer:
    """Observes the inputs of a model's layers and losses while it is entered, and changes them if repairs say so.

    Args:
        detail: record facts of every layer (one step); False: only losses and changes.
        run_loss: calls a loss, if training compiles it.
        loss_at: the user's line for each of the model's losses, in order.
    """

    def __init__(
        self,
        model: Any,
        repairs: Sequence[Repair] = (),
        *,
        detail: bool = False,
        places: Callable[[Any], Place | None] = lambda layer: None,
        asked_at: Mapping[Any, Sequence[Place]] | None = None,
        run_loss: Callable[..., Any] | None = None,
        loss_at: Callable[[Any], Place | None] = lambda loss: None,
    ) -> None:
        self.record = StepRecord()
        self._model = model
        self._detail = detail
        self._places, self._asked_at, self._loss_at = places, asked_at or {}, loss_at
        self._run_loss = run_loss
        self._loss_repairs = [r for r in repairs if r.seam == Seam.LOSS]
        self._forward_repairs = [r for r in repairs if r.seam == Seam.FORWARD]
        self._cut_repairs = [r for r in repairs if r.seam == Seam.CUT]
        self._normalised_at: Place | None = None
        self._activation_repairs = [r for r in repairs if r.seam == Seam.ACTIVATION]
        self._names = {id(layer): n for n, layer in tensors.named_layers(model).items()}
        self._activated: dict[int, _Activated] = {}
        self._modes = self.record.modes = Modes(model)
        self._exchanged: dict[int, str] = {}
        self._depth = 0
        self._in_loss = 0
        self._losses = 0

    def __enter__(self) -> Observer:
        self._layer_call, self._loss_call = keras.layers.Layer.__call__, keras.losses.Loss.__call__
        observer = self

        def layer_call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            return observer._layer(layer, args, kwargs)

        def loss_call(loss: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return observer._loss(loss, y_true, y_pred, sample_weight)

        calls = (keras.layers.Layer, "__call__", layer_call), (keras.losses.Loss, "__call__", loss_call)
        self._modes.__enter__()
        try:
            for repair in self._forward_repairs:
                apply_repair(repair, Call(seam=Seam.FORWARD, given={"model": self._model}, tensors=tensors))
            self._replaced = replaced([*calls, *self._watched_functions()])
            self._replaced.__enter__()
        except BaseException as error:
            self._modes.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._modes.__exit__(kind, error, trace)
        self._replaced.__exit__(None, None, None)

    def _watched_functions(self) -> Iterator[tuple[Any, str, Any]]:
        """Functions that a script's own code calls by name, and what stands in their places."""
        names = ("tensorflow", "tensorflow.math")
        tensorflow = [module for name in names if (module := sys.modules.get(name)) is not None]
        if self._detail or self._cut_repairs:
            for module in (keras.ops, *tensorflow[:1]):
                yield module, "stop_gradient", self._cutting(module.stop_gradient)
        if self._detail:
            for name in ("softmax", "sigmoid"):
                yield keras.ops, name, self._normalising(getattr(keras.ops, name), name)
            for module in (keras.ops, *tensorflow):
                for name in _DISCRETE & set(vars(module)):
                    yield module, name, self._stepping(getattr(module, name), name)

    def _stepping(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            if is_users(caller.f_code.co_filename) and (where := user_place(caller)) is not None:
                self.record.discrete.append((f"{name}()", where))
            return function(*args, **kwargs)

        return call

    def _cutting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stop_gradient(value: Any, *args: Any, **kwargs: Any) -> Any:
            result = function(value, *args, **kwargs)
            if self._in_loss or user_frame(sys._getframe(1)) is None:
                return result
            where = user_place(sys._getframe(1))
            given = {"operation": "stop_gradient()", "where": where, "value": value, "result": result}
            call = Call(seam=Seam.CUT, given=given, tensors=tensors)
            for repair in self._cut_repairs:
                call = apply_repair(repair, call)
            if call["result"] is result and where is not None:
                self.record.cuts.append(where)
            return call["result"]

        return stop_gradient

    def _normalising(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if (where := user_place(sys._getframe(1))) is not None:
                self._normalised_at = where
            return function(*args, **kwargs)

        return call

    # Layers

    def _layer(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if id(layer) not in self._names and layer is not self._model:
            result = self._layer_call(layer, *args, **kwargs)
            if layer.weights and not any(layer is one for one in self.record.unlisted):
                self.record.unlisted.append(layer)
                self.record.unlisted_at.append(user_place(sys._getframe(1)))
            return result
        caller = sys._getframe(2) if self._depth == 0 else None
        restore = self._watch_activation(layer)
        self._depth += 1
        try:
            with self._modes.calling(args, kwargs, caller):
                result = self._layer_call(layer, *args, **kwargs)
        except Exception as error:
            self._note_failure(layer, args, error)
            raise
        finally:
            self._depth -= 1
            restore()
        if layer is self._model and not self._in_loss:
            self.record.output = result
        self._note_activation(layer, args, result)
        if self._detail and all(map(tensors.has_values, filter(tensors.is_tensor, tensors.leaves(result)))):
            self._note(layer, args, result)
        return result

    def _watch_activation(self, layer: Any) -> Callable[[], None]:
        """Apply the repairs before a layer's activation, or before a layer that is one; returns an undo function."""
        attribute = "call" if type(layer).__name__ in LAYERS else "activation"
        function, said = getattr(layer, attribute, None), activation_name(layer)
        if not self._activation_repairs or not callable(function):
            return lambda: None
        name = self._names.get(id(layer), layer.name)

        def changed(values: Any, *args: Any, **kwargs: Any) -> Any:
            call = Call(
                seam=Seam.ACTIVATION,
                given={"function": said, "values": values, "module": name, "where": None},
                tensors=tensors,
            )
            for repair in self._activation_repairs:
                call = apply_repair(repair, call)
            if call["function"] == said:
                return function(call["values"], *args, **kwargs)
            self._exchanged[id(layer)] = call["function"]
            return activation_of(call["function"])(call["values"])

        changed.__name__ = said
        before = layer.__dict__.get(attribute)
        layer.__dict__[attribute] = changed
        if before is None:  # a method of its class
            return lambda: layer.__dict__.pop(attribute)
        return lambda: layer.__dict__.update({attribute: before})

    def _activation_in_force(self, layer: Any) -> str:
        """The name of the activation that a layer really calls; empty for none."""
        name = self._exchanged.get(id(layer), activation_name(layer))
        return "" if name in ("linear", "identity") else name

    def _note_activation(self, layer: Any, args: tuple[Any, ...], result: Any) -> None:
        kind, name = type(layer).__name__, self._activation_in_force(layer)
        if not name:
            source = self._activated.get(id(args[0])) if args and kind in _MOVERS else None
            if source is not None:
                self._activated[id(result)] = _Activated(result, source.function, source.where, source.module)
            return
        where = self._places(layer)
        self._activated[id(result)] = _Activated(result, name, where, self._names.get(id(layer), layer.name))

    def _note_failure(self, layer: Any, args: tuple[Any, ...], error: Exception) -> None:
        if self.record.failure is None:
            self.record.error, self.record.failure = error, failure_of(error)
            self.record.failed_stage = Stage.LOSS if self._in_loss else Stage.FORWARD
            self.record.failed_module = self._facts(layer, args, None)
        elif self.record.error is error:  # propagating: it has passed more of the user's lines by now
            self.record.failure = failure_of(error)

    def _note(self, layer: Any, args: tuple[Any, ...], result: Any) -> None:
        facts = self._facts(layer, args, result)
        self.record.modules.append(facts)
        if facts.output is None:
            return
        name = self._activation_in_force(layer)
        if name in KINDS and type(layer).__name__ not in KINDS.values():
            self.record.modules.append(of_activation(facts, name, result))
        clean = all(not t.non_finite for t in facts.inputs)
        if facts.output.non_finite and clean and facts.leaf and self.record.non_finite_from is None:
            self.record.non_finite_from = Origin(
                operation=facts.kind, where=facts.where, module=facts.name, count=facts.output.non_finite
            )

    def _facts(self, layer: Any, args: tuple[Any, ...], result: Any) -> ModuleFacts:
        given = [t for t in tensors.leaves(list(args)) if tensors.is_tensor(t)]
        out = next((t for t in tensors.leaves(result) if tensors.is_tensor(t)), None) if result is not None else None
        sizes, kind = declared_sizes(layer), type(layer).__name__
        asked = self._asked_at.get(layer, ()) if sizes else ()
        rate = getattr(layer, "rate", None)
        return ModuleFacts(
            name=self._names.get(id(layer), ""),
            kind=kind,
            where=self._places(layer),
            inputs=tuple(tensors.facts(t) for t in given[:4]),
            output=tensors.facts(out) if out is not None else None,
            training=self._names.get(id(layer)) not in self._modes.inactive,
            leaf=not layer._flatten_layers(recursive=False, include_self=False),
            sizes=sizes,
            fixed_size=True,
            size_at=self._declared_at(layer)
            if layer is self._model
            else next((place for place in asked if is_written(place, sizes[-1])), None),
            dropout=float(rate) if isinstance(rate, (int, float)) and "ropout" in kind else None,
            **(activation_shares(kind.lower(), tensors.to_numpy(out)) if out is not None else {}),
        )

    def _declared_at(self, model: Any) -> Place | None:
        """The line of a model's only Input."""
        inputs = [la for la in getattr(model, "_layers", ()) if type(la).__name__ == "InputLayer"]
        return self._places(inputs[0]) if len(inputs) == 1 else None

    # Losses

    def _loss(self, loss: Any, y_true: Any, y_pred: Any, sample_weight: Any) -> Any:
        if type(loss).__name__ == "CompileLoss" or self._in_loss:
            return self._loss_call(loss, y_true, y_pred, sample_weight)
        inside = self._depth > 0 and version().has_library_step(self._model)
        if inside and not version().uses_library_loss(self._model):
            return self._loss_call(loss, y_true, y_pred, sample_weight)
        kind = kind_of(loss)
        if inside and kind is not None:  # the library averages over its rows
            kind = replace(kind, options={**kind.options, "reduction": "mean"})
        number, self._losses = self._losses, self._losses + 1
        if kind is None:
            return self._own_loss(loss, y_true, y_pred, sample_weight)
        original = y_pred
        loss, kind, y_true, y_pred, sample_weight, scale = self._changed(
            loss, kind, y_true, y_pred, sample_weight, number
        )
        kept = KeptLoss(kind=kind, loss=loss, scores=y_pred, targets=y_true, weight=sample_weight)
        failure = None
        self._in_loss += 1
        try:
            run = self._run_loss or (lambda f, *a: f(*a))
            kept.value = run(as_function(self._loss_call, loss), y_true, y_pred, sample_weight)
            return kept.value if scale == 1.0 else kept.value * scale
        except Exception as error:
            failure = failure_of(error)
            self._note_loss_failure(error)
            raise
        finally:
            self._in_loss -= 1
            self._keep(kept, original, failure, loss)

    def _own_loss(self, loss: Any, y_true: Any, y_pred: Any, sample_weight: Any) -> Any:
        try:
            return self._loss_call(loss, y_true, y_pred, sample_weight)
        except Exception as error:
            self._note_loss_failure(error)
            raise

    def _note_loss_failure(self, error: Exception) -> None:
        if self.record.failure is None:
            self.record.error, self.record.failure = error, failure_of(error)
            self.record.failed_stage = Stage.LOSS

    def _changed(
        self, loss: Any, kind: LossKind, y_true: Any, y_pred: Any, weight: Any, number: int
    ) -> tuple[Any, LossKind, Any, Any, Any, float]:
        """The loss call with the repairs in force."""
        if not self._loss_repairs:
            return loss, kind, y_true, y_pred, weight, 1.0
        given = {
            **kind.options,
            "logits": y_pred,
            "targets": y_true,
            "function": kind.function,
            "number": number,
            "from_logits": kind.from_logits,
            "own": kind.own,
            "weight": weight,
            "scale": 1.0,
            "trained": True,
            "shown": True,
        }
        call = Call(seam=Seam.LOSS, given=given, tensors=tensors)
        for repair in self._loss_repairs:
            call = apply_repair(repair, call)
        changed = {k: v for k, v in call.given.items() if k in ("function", "from_logits", "own") and v != given[k]}
        logits, targets = call["logits"], call["targets"]
        if changed:
            loss = with_kind(loss, kind, changed, one_hot=len(logits.shape) > 1 and logits.shape == targets.shape)
            kind = kind_of(loss) or kind
        if not call.given.get("trained", True):
            logits = keras.ops.stop_gradient(logits)
        return loss, kind, targets, logits, call.given.get("weight"), float(call["scale"])

    def _keep(self, kept: KeptLoss, original: Any, failure: Failure | None, loss: Any) -> None:
        self.record.kept_losses.append(kept)
        if not self._detail:
            return
        active = self._activated.get(id(original)) or self._activated.get(id(kept.scores))
        self.record.loss_calls.append(
            measure_call(
                kept,
                at=self._loss_at(loss),
                failure=failure,
                activation=active.function if active else "",
                activation_at=active.where if active else None,
                activation_module=active.module if active else "",
                softmax_at=active.where if active and active.function == "softmax" else self._normalised_at,
                unreachable_share=unreachable_share(active.function, tensors.to_numpy(kept.targets))
                if active
                else None,
            )
        )


def as_function(call: Callable[..., Any], loss: Any) -> Callable[..., Any]:
    """The loss as a function of targets, scores and weights."""
    return lambda y_true, y_pred, weight=None: call(loss, y_true, y_pred, weight)
