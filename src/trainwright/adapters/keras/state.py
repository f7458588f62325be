"""Snapshots of a Keras model, its optimizer, metrics and losses, to restore after a check; includes "not built yet"."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from trainwright.seams.state.snapshot import RandomState
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

# Keras classes whose objects are never modified after construction.
_FIXED = ("KerasTensor", "Node", "KerasHistory", "DTypePolicy", "InputSpec", "Initializer")
# A layer's generator counts its draws from 0; a further run starts beyond any count that a run reaches.
_APART = 1_000_000


class KerasState:
    """Everything that training changes in these objects: attributes, lists and variable values, at any depth."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._attributes: list[tuple[Any, dict[str, Any]]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._values: list[tuple[Any, Any]] = []
        self._kept: list[Any] = []
        seen: set[int] = set()
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            waiting += self._keep(value)

    def _keep(self, value: Any) -> Iterator[Any]:
        if version().is_variable(value):
            self._kept.append(value)
            cell = version().cell(value)
            self._values.append((value, _copied(cell)))
            if cell is not value:
                self._attributes.append((value, dict(value.__dict__)))
        elif isinstance(value, (list, dict, set)) and _is_plain(value):
            self._kept.append(value)
            self._contents.append((value, _content(value)))
            yield from value.values() if isinstance(value, dict) else value
        elif (held := version().wrapped(value)) is not None:
            yield held
        elif isinstance(value, tuple):
            yield from value
        elif _is_part(value):
            self._kept.append(value)
            self._attributes.append((value, dict(value.__dict__)))
            yield from value.__dict__.values()

    def put_back(self) -> None:
        """Restore every object's attributes, contents and values."""
        for value, content in self._contents:
            _refill(value, content)
        for owner, attributes in self._attributes:
            now = owner.__dict__
            if list(now) != list(attributes) or any(now[k] is not v for k, v in attributes.items()):
                now.clear()
                now.update(attributes)
        for variable, kept in self._values:
            _write(variable, kept)


def _is_plain(value: Any) -> bool:
    return type(value) in (list, dict, set) or type(value).__module__.startswith(
        (f"{version().package}.", "collections")
    )


def _is_part(value: Any) -> bool:
    """Whether its class is Keras's, or a user's subclass of one."""
    kind = type(value)
    if isinstance(value, type) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    if kind.__name__ in _FIXED or (callable(value) and kind.__name__ in ("function", "method")):
        return False
    return version().is_wrapper(value) or any(
        k.__module__.startswith(f"{version().package}.") and k.__name__ not in _FIXED for k in kind.__mro__
    )


def _content(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else set(value)


def _refill(value: Any, content: Any) -> None:
    """Uses the methods of the built-in types, because a tracked list would track restored items again."""
    if isinstance(value, list):
        list.__setitem__(value, slice(None), content)
    elif isinstance(value, dict):
        if list(value) != list(content) or [*map(id, value.values())] != [*map(id, content.values())]:
            dict.clear(value)
            dict.update(value, content)
    else:
        set.clear(value)
        set.update(value, content)


def _copied(value: Any) -> Any:
    if value is None:
        return None
    if keras.config.backend() == "torch":
        return value.detach().clone(), value.requires_grad, None if value.grad is None else value.grad.clone()
    return np.array(value.numpy() if keras.config.backend() == "tensorflow" else value)


def _write(variable: Any, kept: Any) -> None:
    if kept is None:
        return
    value = version().cell(variable)
    if keras.config.backend() == "torch":
        import torch

        with torch.no_grad():
            value.copy_(kept[0])
        value.requires_grad_(kept[1])
        value.grad = kept[2]
    elif keras.config.backend() == "tensorflow":
        value.assign(kept)
    else:  # the training may have given away the array
        variable._value = keras.ops.convert_to_tensor(kept)


class AllState:
    """The objects' state, Keras's global names and settings, and all reachable random state."""

    def __init__(self, roots: Iterable[Any], loose: Iterable[Any] = ()) -> None:
        self._random = RandomState(loose)
        self._backend, self._seeds = _backend_random(), version().seeds()
        self._globals = {
            k: (v, _content(v) if type(v) in (list, dict, set) else None) for k, v in version().settings().items()
        }
        generator = version().settings().get("global_seed_generator")
        self._state = KerasState([*roots, *([generator] if generator is not None else [])])

    def put_back(self) -> None:
        """Restore everything."""
        self._state.put_back()
        tracker = version().settings()
        for name in [n for n in tracker if n not in self._globals]:
            del tracker[name]
        for name, (value, content) in self._globals.items():
            if content is not None:
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)
            tracker[name] = value
        self._random.put_back()
        version().put_back_seeds(self._seeds)
        _put_back_random(self._backend)


def _backend_random() -> Any:
    """TensorFlow's random state: the operations' seeds and the global generator."""
    if keras.config.backend() != "tensorflow":
        return None
    from tensorflow.python.eager import context

    now = context.context()
    rng = getattr(now, "_rng", None)
    return now._seed, rng.getstate() if isinstance(rng, random.Random) else None


def _put_back_random(kept: Any) -> None:
    if kept is None:
        return
    from tensorflow.python.eager import context

    now, (seed, state) = context.context(), kept
    if seed is not None:
        now._set_global_seed(seed)
    else:
        now._seed = seed
    if state is not None:
        now._rng.setstate(state)


def seed_everything(model: Any, seed: int) -> None:
    """Seed Python, NumPy, the backend, and the model's own generators."""
    from trainwright.seams.state.snapshot import seed_everything as seed_others

    seed_others(seed)
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.random.set_seed(seed)
    version().seed_operations(seed)
    for layer in model._flatten_layers():
        for generator in version().seed_generators(layer):
            first = int(tensors.to_numpy(generator.state)[0])
            generator.state.assign(np.asarray([first, _APART * seed]))
