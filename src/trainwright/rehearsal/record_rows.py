"""Rows that a record holds beside the calls: as the script had them before it prepared them, and those that broke a training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Facts, Place, Repair, Rule
from trainwright.core.rule import load_rules
from trainwright.core.trial import Outcome, Trial
from trainwright.look.judging import ask_rule

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


@dataclass(kw_only=True)
class RawRows:
    """Rows of a set as the script held them before it prepared them."""

    data: int
    """The set that loaders draw from."""
    numbers: Integers
    """(n,) the rows' numbers in that set."""
    columns: dict[str, Floats]
    """(n, d) each column by its name: a number, categories as zeros and ones, texts as counts of hashed pieces."""
    groups: tuple[tuple[str, Integers], ...] = ()
    """Columns of names and whole numbers that come again and again, as a patient's do: a number for each value, (n,)."""


@dataclass(kw_only=True)
class Broken:
    """The rows with which a loss first stopped being finite."""

    rows: tuple[int, ...] = ()
    """The first that hold such a value; none: their numbers are finite."""
    count: int = 0
    """How many rows do."""
    is_numbered: bool = False
    """Whether the rows are numbered in their set; otherwise in the batch."""
    column: str = ""
    position: int = 0
    """The place in the first row's column, counted over all its dimensions."""
    value: float = 0.0
    data: str = ""
    """The set's class, and below its rows."""
    size: int = 0
    origin: str = ""
    """The table of the script that the first row came from, and below the line of its file."""
    where: Place | None = None


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A set that changes what it stores when its rows are read."""

    name: str
    """Its class, and below the name of what changes."""
    held: str
    size: int
    where: Place
    """The line that writes."""


@dataclass(frozen=True, kw_only=True)
class DrawnAgain:
    """Rows whose target is as large as their input, in two draws that differ."""

    columns: tuple[str, str]
    where: Place | None
    """Where the set reads a row."""
    pairs: list[tuple[Floats, Floats, Floats, Floats]]
    """(height, width) each: the first column of both draws, and the second one of both; made small."""


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What a language model made of the beginning of a row, once the script was over; the row as in `Sampled`."""

    trains: bool
    data: int
    model: int
    number: int | None
    update: int
    prompt: str
    text: str
    """What it generated."""
    expected: str
    """How the row goes on."""


@dataclass(frozen=True)
class Looked:
    """What the close look at a training's first updates has measured."""

    training: int
    """Its number; 0: it made no update."""
    facts: dict[type[Facts], Facts]
    is_end: bool = False
    """Whether it is a look at the exception that ended the run, or at the step that raised it."""
    outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    """Of the trials that rules asked for, by the rule's name and the trial's number."""
    repaired: tuple[str, ...] = ()
    """What the repairs do that have changed a call of the run."""

    def answer(self, rule: Rule, number: int, trial: Trial) -> Outcome:
        """The outcome of a rule's trial; of one that was not made behind the run, that it could not be made."""
        cut_off = Outcome(changed=trial.change.does, before=(), after=(), cut_off=True)
        return self.outcomes.get((rule.name, number), cut_off)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A repair that is to be in force in a run: of what a rule finds in the facts of a look."""

    rule: str
    does: str
    looked: Looked

    def find(self) -> Repair | None:
        """The repair, which the rule makes anew."""
        rules = (rule for rule in load_rules() if rule.name == self.rule)
        found = (f.repair for rule in rules for f in ask_rule(rule, self.looked.facts, self.looked.answer))
        return next((repair for repair in found if repair is not None and repair.does == self.does), None)
