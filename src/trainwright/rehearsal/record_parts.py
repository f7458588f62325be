"""What a record holds beside the calls: rows as the script had them before it prepared them, those that broke a training, and how the
run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Failure, Place

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


@dataclass(kw_only=True)
class Ended:
    """How the run ended."""

    failure: Failure | None = None
    """The exception that ended the script."""
    exit: Failure | None = None
    """Its own exit with another status than 0, behind trainings that had ended: they are as sound as without it."""
    update: int = 0
    is_cut: bool = False
    """Whether its time was over before the script's end."""
    misuse: str = ""
    """What is wrong with the command or the environment, so that nothing can be checked."""
    hindrance: str = ""
    """What the script needs that a rehearsal does not have, if that ended it."""
    own_error: str = ""
    """An exception of ours that ended the run: no report may blame the script for it."""
    status: int | None = None
    """The exit status, or minus the signal, of a process that died; None: it ended by itself."""
    printed: str = ""
    """The last line that it printed; empty: none, or nobody read."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The modules that a run has loaded."""

    libraries: tuple[str, ...]
    """In the order in which their imports began."""
    own: tuple[str, ...]
    """The script's, without those within packages: a library of such a name is another module."""
    environment: Mapping[str, str]
    """The variables that the script and its libraries have set."""


@dataclass(frozen=True, kw_only=True)
class LastingNoise:
    """What a model does in evaluation mode, tried after the run, as it does in training mode."""

    model: int
    operation: str
    """`dropout`, or `batch_norm` with the statistics of the batch."""
    where: Place | None


@dataclass(kw_only=True)
class KeptWeights:
    """Weights that were saved to a file or copied."""

    update: int
    weights: float
    """Their fingerprint."""
    how: str
    """`saved` or `copied`."""
    path: str = ""
    tensors: int = 0
    where: Place | None = None


@dataclass(kw_only=True)
class Loaded:
    """Weights that were put into a model."""

    update: int
    model: int
    before: float
    """The fingerprint of the model's weights before it, and below after it."""
    after: float
    missing: int
    """Tensors of the model for which there were none."""
    tensors: int
    where: Place | None = None
    taken: int | None = None
    """After how many updates `state_dict` gave them, if they are no copy: the model's own weights, trained on since."""
    taken_at: Place | None = None


@dataclass(kw_only=True)
class Best:
    """What a callback kept as best, by its monitored number."""

    name: str
    higher_is_better: bool | None
    """As the callback was told; None: not said."""
    values: tuple[float, ...]
    """The number at each look."""
    kept: int | None
    """The index in `values` of the weights that the model has at the end, or that a callback holds as best; None: no such."""
