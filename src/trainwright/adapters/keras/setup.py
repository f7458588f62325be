"""The hyperparameters of a Keras fit, including defaults, and the user's lines where each was written."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from trainwright.adapters.keras.backend import takes_all_memory
from trainwright.adapters.keras.calls import callbacks_of, own_code
from trainwright.adapters.keras.optimizer import (
    accumulated_batches,
    compile_places,
    optimizer_places,
    resolve_arguments,
)
from trainwright.adapters.keras.schedule import setting_callback
from trainwright.adapters.keras.training import FitTraining
from trainwright.adapters.keras.words import WORDS
from trainwright.core import Place
from trainwright.seams.devices.memory_owners import accelerators
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.source.places import definition_place, place_of, show
from trainwright.seams.source.written import (
    assignment_place,
    call_end,
    call_node,
    config_place,
    key_places,
    keyword_places,
    look_up,
    names_of,
    syntax_tree,
)
from trainwright.stages import Argument, IneffectiveFreeze, OverriddenMethod, SetupFacts
from trainwright.stages.setup import planned_memory
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_WATCHED = ("train_step", "test_step", "compute_loss", "compute_metrics", "call")
# The report's names for fit's arguments.
_ROLES = {"x": "train_dataset", "y": "labels", "validation_data": "eval_dataset"}
_COMPILE_DEFAULTS = {"loss_weights": None, "metrics": None, "weighted_metrics": None, "run_eagerly": False,
                     "steps_per_execution": 1, "jit_compile": "auto"}  # fmt: skip


def setup_facts(fit: FitTraining, planned_updates: int | None) -> SetupFacts:
    """The arguments, places and devices of the training that is about to start."""
    fit.try_to_build()
    model, given, frame, seen = fit.model, fit.given, fit.frame, fit.seen
    freezes = ineffective_freezes(model, seen, later_freezes(model, frame), fit.real_step)
    fit.reset()
    weights = [v for _, v in tensors.named_variables(model).values()]
    trained = {id(v) for v in model.trainable_variables}
    # A model that could not be built has no weights yet; its optimizer's variables are on the same device.
    placed = weights or [v for v in getattr(model.optimizer, "variables", ()) if "float" in str(v.dtype)]
    device = fit.backend.device(placed[0]) if placed else "cpu"
    return SetupFacts(
        framework="keras",
        words=WORDS,
        automatic_steps=True,
        call=f"{type(model).__name__}.fit",
        arguments=arguments(model, given, seen, fit.optimizers()),
        places=find_places(model, frame, seen) | _callback_places(given, seen),
        overrides=tuple(_overrides(model)),
        model_class=type(model).__name__,
        loads_checkpoint=_loads_checkpoint(model, seen),
        trained_before=any(v in seen.trained_earlier for v in weights),
        parameters=sum(_size(v) for v in weights),
        trainable_parameters=sum(_size(v) for v in weights if id(v) in trained),
        planned_memory=planned_memory(
            sum(4 * _size(v) for v in weights),
            sum(4 * _size(v) for v in weights if id(v) in trained),
            type(model.optimizer).__name__,
            momentum=bool(getattr(model.optimizer, "momentum", 0)),
        ),
        frozen_at=_frozen_at(seen),
        device=device,
        accelerators=accelerators(device),
        takes_all_memory=takes_all_memory(),
        precision={"mixed_bfloat16": "bf16", "bfloat16": "bf16", "mixed_float16": "fp16", "float16": "fp16"}.get(
            model.dtype_policy.name, "fp32"
        ),
        batch_size=fit.data.batch_size or 0,
        accumulation=accumulated_batches(model.optimizer),
        epochs=float(fit.data.plan.epochs),
        planned_updates=planned_updates,
        ranks=seen.ranks,
        ineffective_freezes=freezes,
    )


def _size(variable: Any) -> int:
    return int(np.prod(variable.shape)) if variable.shape else 1


def _loads_checkpoint(model: Any, seen: BuiltObjects) -> bool:
    return any(layer in seen.loadings for layer in tensors.named_layers(model).values())


def arguments(
    model: Any, given: Mapping[str, Any], seen: BuiltObjects, optimizers: Mapping[str, Any]
) -> dict[str, Argument]:
    """Every effective hyperparameter of fit, compile, the optimizers and the losses."""
    found: dict[str, Argument] = {}
    for name, parameter in inspect.signature(keras.Model.fit).parameters.items():
        if name in ("self", "x", "y", "validation_data", "callbacks", "sample_weight", "verbose"):
            continue
        value = given.get(name, parameter.default)
        if isinstance(value, (int, float, str, bool, type(None))):
            found[name] = Argument(value=value, given=name in given)
    compiled = seen.compiled.get(model)
    told = compiled.given if compiled else {}
    for name, default in _COMPILE_DEFAULTS.items():
        value = told.get(name, default)
        if isinstance(value, (int, float, str, bool, type(None))):
            if name == "jit_compile":
                value = bool(model.jit_compile)
            found[name] = Argument(value=value, given=name in told)
    named = told.get("optimizer", "rmsprop")
    if isinstance(named, str) and "optimizer" in optimizers:
        found["optimizer"] = Argument(value=named, given="optimizer" in told)
    for attribute, optimizer in optimizers.items():
        found |= resolve_arguments(optimizer, seen, attribute)
    return {**found, **_losses(told.get("loss"))}


def _losses(loss: Any) -> dict[str, Argument]:
    """The defaults of losses that the script named by a string."""
    found = {}
    named = (
        loss.items()
        if isinstance(loss, Mapping)
        else enumerate(loss)
        if isinstance(loss, (list, tuple))
        else [("", loss)]
    )
    for key, one in named:
        if not isinstance(one, str):
            continue
        prefix = f"loss[{key!r}]" if key != "" else "loss"
        found[prefix] = Argument(value=one, given=True)
        try:
            function = keras.losses.get(one)
        except ValueError:
            continue
        parameters = inspect.signature(getattr(function, "fn", function)).parameters
        for name, parameter in parameters.items():
            if name not in ("y_true", "y_pred") and parameter.default is not inspect.Parameter.empty:
                found[f"{prefix}.{name}"] = Argument(value=parameter.default, given=False)
    return found


def _callback_places(given: Mapping[str, Any], seen: BuiltObjects) -> dict[str, Place]:
    """The line that built the callback that sets the learning rate."""
    setting = setting_callback(callbacks_of(given))
    built = seen.callbacks.get(setting) if setting is not None else None
    return {"scheduler": built.place} if built is not None else {}


def find_places(model: Any, frame: Any, seen: BuiltObjects) -> dict[str, Place]:
    """The user's lines, by role."""
    compiled = seen.compiled.get(model)
    places = compile_places(compiled)
    if "optimizer" in places:
        places["learning_rate"] = places["optimizer"]
    places |= optimizer_places(model.optimizer, seen)
    call = place_of(frame)
    places |= {"train_call": call, "trainer": call}
    file = frame.f_code.co_filename
    written = keyword_places(file, frame.f_lineno, "fit", end=call_end(frame))
    for keyword, (place, value) in written.items():
        role = _ROLES.get(keyword, keyword)
        places[role] = place
        _add_made(places, role, value, file, frame.f_lineno)
    _add_positional(places, frame)
    if model in seen.modules:
        places["model"] = seen.modules[model]
    for name in names_of(model, frame):
        if made := assignment_place(file, name, frame.f_lineno):
            places.setdefault("model", made)
    for method in _WATCHED:
        if (code := own_code(model, method)) is not None:
            places[method] = Place(show(code.co_filename), code.co_firstlineno)
    metrics = [m for m in (compiled.given.get("metrics") or ()) if hasattr(m, "__code__")] if compiled else []
    if metrics and (defined := definition_place(metrics[0])) is not None:
        places["metrics"] = defined
    if limits := key_places(file, "max_length", frame.f_lineno):
        places["max_length"] = limits[-1]
    return places | config_place(model, file)


def _add_positional(places: dict[str, Place], frame: Any) -> None:
    """Add the places of positional arguments: x and y are usually passed that way."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    call = call_node(file, line, "fit", end=call_end(frame))
    for role, value in zip(("train_dataset", "labels", "batch_size", "epochs"), call.args if call else ()):
        places.setdefault(role, Place(show(file), value.lineno))
        _add_made(places, role, value, file, line)


def _add_made(places: dict[str, Place], role: str, value: ast.expr, file: str, line: int) -> None:
    """Add the line that assigned the variable passed as an argument."""
    while isinstance(value, (ast.Subscript, ast.Attribute)):
        value = value.value
    if isinstance(value, ast.Tuple) and value.elts:
        value = value.elts[0]
    if isinstance(value, ast.Name) and (made := assignment_place(file, value.id, line)):
        places[f"{role}_made"] = made


def _overrides(model: Any) -> list[OverriddenMethod]:
    found = []
    for name in _WATCHED:
        if (code := own_code(model, name)) is not None:
            where = Place(show(code.co_filename), code.co_firstlineno)
            found.append(OverriddenMethod(name=name, missing=(), where=where))
    return found


def library_name(scope: Mapping[str, Any]) -> str:
    """The script's name for Keras: keras, tf.keras; empty if it has none."""
    modules = {n: getattr(v, "__name__", "") for n, v in scope.items() if isinstance(v, ModuleType)}
    direct = next((n for n, name in modules.items() if name in version().names), "")
    other = next((n for n, name in modules.items() if name == "tensorflow"), "")
    return direct or (f"{other}.keras" if other and version().is_of_tensorflow() else "")


def _frozen_at(seen: BuiltObjects) -> tuple[Place, ...]:
    """The lines that froze layers that have weights and are still frozen; the line that froze the most comes first."""
    held = [(la, place) for la, place in seen.frozen_layers.items() if not la.trainable and la.weights]
    return tuple(dict.fromkeys(place for _, place in sorted(held, key=lambda one: -len(one[0].weights))))


def later_freezes(model: Any, frame: Any) -> list[tuple[Any, Place]]:
    """Layers that the script freezes between this fit and the next one without compiling again."""
    file, reached = frame.f_code.co_filename, frame.f_lineno
    tree, names = syntax_tree(file), names_of(model, frame)
    calls = [
        (n.lineno, n.func.attr)
        for n in (ast.walk(tree) if tree else ())
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("fit", "compile")
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id in names
        and n.lineno > reached
    ]
    first = min(calls, default=None)
    if tree is None or first is None or first[1] != "fit":
        return []
    scope = {**frame.f_globals, **frame.f_locals}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not reached < node.lineno < first[0]:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and target.attr == "trainable" and isinstance(value, ast.Constant):
            owner = look_up(target.value, scope)
            if value.value is False and isinstance(owner, keras.layers.Layer):
                found.append((owner, Place(show(file), node.lineno)))
    return found


def ineffective_freezes(
    model: Any, seen: BuiltObjects, later: Sequence[tuple[Any, Place]], step: Callable[[], None]
) -> tuple[IneffectiveFreeze, ...]:
    """Layers that were frozen after the training step was compiled, and that a step changes nevertheless.

    Args:
        later: layers that the script will freeze after this training, with the lines that do so.
        step: takes one step as `fit` would, with the same compiled function.
    """
    layers, places = list(tensors.named_layers(model).values()), dict(seen.frozen_layers)
    frozen = [
        la
        for la in layers
        if la in places and not la.trainable and la.weights and version().may_train_frozen(model, la)
    ]
    ahead = [(la, place) for la, place in later if any(la is one for one in layers) and la.trainable and la.weights]
    if not frozen and not ahead:
        return ()
    if ahead:  # by then, this training will have compiled the step
        step()
        for layer, place in ahead:
            layer.trainable, places[layer] = False, place
        frozen += [layer for layer, _ in ahead]
    named = {id(v): n for n, (_, v) in tensors.named_variables(model).items()}
    before = {id(v): tensors.value_of(v).copy() for la in frozen for v in la.weights}
    step()
    found = []
    for layer in frozen:
        moved = [v for v in layer.weights if not np.array_equal(before[id(v)], tensors.value_of(v))]
        if moved and not any(layer in other._flatten_layers(include_self=False) for other in frozen):
            found.append(
                IneffectiveFreeze(
                    attribute="trainable",
                    on_modules=True,
                    kind=type(layer).__name__,
                    objects=1,
                    parameters=tuple(named[id(v)] for v in moved),
                    where=places[layer],
                    after_compile=True,
                )
            )
    return tuple(found)
