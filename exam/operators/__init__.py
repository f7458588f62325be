"""The operators: each plants one fault wherever a program lets it.

An operator is written from the fault, not from a rule: how it would come about in that program. `named` lists the rules
whose finding would be a right answer; where no rule claims the fault the list is empty, and the fault counts as missed
until one does.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from exam.source import Plant

Harm = Literal["worse", "differs"]


@dataclass(frozen=True)
class Operator:
    """One way to break a program."""

    name: str
    family: str
    named: tuple[str, ...]  # rules that would be right
    harm: Harm  # "worse": it trains worse; "differs": what it reports of itself is not what the sound program reports
    plant: Plant

    @property
    def fault(self) -> str:
        """What it does, in a sentence."""
        return (self.plant.__doc__ or "").strip().splitlines()[0]


OPERATORS: dict[str, Operator] = {}


def operator(*named: str, harm: Harm = "worse") -> Callable[[Plant], Plant]:
    """Register a generator of planted programs as the operator of its name."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        family = plant.__module__.rpartition(".")[2]
        if name in OPERATORS:
            raise ValueError(f"two operators are called {name}")
        OPERATORS[name] = Operator(name, family, named, harm, plant)
        return plant

    return register


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
