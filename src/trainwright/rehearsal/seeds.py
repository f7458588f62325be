"""Moves the random seeds of a script, so that several runs show how much its results vary."""

from __future__ import annotations

import functools
from typing import Any

import wrapt

from trainwright.seams.listening.doors import watch_door

# Seeds are moved by so many for each further run: scripts that count their seeds up do not meet another run's.
STEP = 7919
# Seeds of numpy are smaller.
MOST = 2**32
# The functions that seed a module's generator, by the module.
_SEEDING = {"random": "seed", "numpy.random": "seed", "torch": "manual_seed", "keras": "utils.set_random_seed"}


def move_seeds(by: int) -> None:
    """Move the seeds that a script sets, and set those that it does not; 0 changes nothing, and nothing is imported."""
    if by:
        for module, name in _SEEDING.items():
            wrapt.register_post_import_hook(functools.partial(_move, name, by), module)


def _move(name: str, by: int, module: Any) -> None:
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, module)
    seed = getattr(owner, last)
    seed(by)
    watch_door(owner, last, functools.partial(_pass_seed, by))


def _pass_seed(by: int, go_on: Any, *args: Any, **kwargs: Any) -> Any:
    """Pass a call on whose first argument is a seed, with that seed moved."""
    if args and isinstance(args[0], int):
        args = ((args[0] + STEP * by) % MOST, *args[1:])
    elif isinstance(kwargs.get("seed"), int):
        kwargs["seed"] = (kwargs["seed"] + STEP * by) % MOST
    return go_on(*args, **kwargs)
