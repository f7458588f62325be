"""Snapshots of what a check disturbs: random state and Python objects."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np


class RandomState:
    """The state of all reachable random generators: Python, NumPy, torch, CUDA, and separate generator objects."""

    def __init__(self, loose: Iterable[Any] = ()) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state()
        self._loose = [(g, _state_of(g)) for g in loose]
        self._torch, self._cuda = _torch_states()

    def put_back(self) -> None:
        """Restore every generator."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        for generator, state in self._loose:
            _set_state(generator, state)
        if self._torch is not None:
            import torch

            torch.set_rng_state(self._torch)
            if self._cuda:
                torch.cuda.set_rng_state_all(self._cuda)


def _torch_states() -> tuple[Any, Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return None, None
    ready = torch.cuda.is_available() and torch.cuda.is_initialized()
    try:
        return torch.get_rng_state(), torch.cuda.get_rng_state_all() if ready else None
    except RuntimeError:  # a device that was lost to an assertion no longer responds
        return torch.get_rng_state(), None


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy, torch and CUDA."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


@cache
def is_accelerated(torch: Any) -> bool:
    """Whether there is a device beside the CPU."""
    named = [getattr(torch, name, None) for name in ("cuda", "xpu", "mtia", "npu", "hpu", "musa", "mlu")]
    kinds = [*named, getattr(torch.backends, "mps", None)]
    return any(kind.is_available() for kind in kinds if kind is not None and hasattr(kind, "is_available"))


def is_generator(value: Any) -> bool:
    """Whether it is a separate random generator object."""
    kind = type(value)
    return isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)) or (
        kind.__module__.startswith("torch") and kind.__name__ == "Generator"
    )


def loose_generators(owners: Iterable[Any]) -> list[Any]:
    """Generators among these objects and among their attributes."""
    found: dict[int, Any] = {}
    for owner in owners:
        values = [owner, *getattr(owner, "__dict__", {}).values()]
        found |= {id(v): v for v in values if is_generator(v)}
    return list(found.values())


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state()


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


class AttributeState:
    """The attributes of Python objects: which ones exist, and which object each is.

    The contents of lists, dictionaries and sets among them are saved too, one level deep.
    """

    def __init__(self, owners: Iterable[Any]) -> None:
        self._kept = [(o, dict(o.__dict__), _contents(o.__dict__)) for o in owners if hasattr(o, "__dict__")]

    def put_back(self) -> None:
        """Restore every object's attributes."""
        for owner, attributes, contents in self._kept:
            for value, content in contents:
                refill(value, content)
            now = owner.__dict__
            if list(now) != list(attributes) or any(now[k] is not v for k, v in attributes.items()):
                owner.__dict__.clear()
                owner.__dict__.update(attributes)


def _contents(attributes: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(v, v.copy()) for v in attributes.values() if type(v) in (list, dict, set) or _is_ordered_dict(v)]


def _is_ordered_dict(value: Any) -> bool:
    return isinstance(value, dict) and type(value).__module__ == "collections"


def refill(value: Any, content: Any) -> None:
    """Let a container hold what it held before."""
    value.clear()
    if isinstance(value, (list, deque)):
        value.extend(content)
    else:
        value.update(content)
