"""How a run computes: number formats and threads, as requested, as before, or as measured. Decided once per run.

They alter the last digits, so a resumed run keeps them, whatever is fastest by then.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from trainwright.lm.config import Recipe
from trainwright.lm.network.precision import FORMATS
from trainwright.lm.runs.checkpoint import State
from trainwright.lm.training import speed
from trainwright.lm.training.processes import Processes

# What OpenMP and MKL ask for the number of threads; torch follows them.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
AS_BEGUN = "as this run began"
_MILLISECONDS = 1000


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """The settings that alter a computation's last digits."""

    precision: str
    """fp32 or bf16: of forward and backward passes."""
    muon_precision: str
    """... of Muon's Newton-Schulz products."""
    threads: int
    """Of torch on the CPU; 0: as many as it takes by itself (on a GPU they decide nothing)."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """An arithmetic, and where it comes from."""

    arithmetic: Arithmetic
    line: str = ""
    """For the user."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What was measured."""

    @property
    def record(self) -> dict[str, Any]:
        """For the log."""
        return {**asdict(self.arithmetic), "line": self.line, "seconds": self.seconds}


def decided(recipe: Recipe, held: State | None, processes: Processes) -> Decision:
    """The same in all processes: the first one's."""
    decision = _decided(recipe, held, processes) if processes.first else None
    if processes.count == 1 and decision is not None:
        return decision
    formats = list(FORMATS)
    own = decision.arithmetic if decision else Arithmetic(precision="fp32", muon_precision="fp32", threads=0)
    told = Arithmetic(
        precision=formats[processes.told(formats.index(own.precision))],
        muon_precision=formats[processes.told(formats.index(own.muon_precision))],
        threads=processes.told(own.threads),
    )
    return decision or Decision(arithmetic=told)


def for_evaluation(recipe: Recipe, trained_in: str, device: torch.device) -> str:
    """The format of a run's loss: what it was trained in, but fp32 on a machine where that is emulated."""
    if recipe.run.precision != "auto" or trained_in == "fp32":
        return trained_in
    return "fp32" if speed.is_emulated(speed.Stopwatch(recipe, device)) else trained_in


def _decided(recipe: Recipe, held: State | None, processes: Processes) -> Decision:
    begun = held if held is not None and held.update else None
    stopwatch: speed.Clock | None = None
    threads, threads_why = _given_threads(recipe, begun, processes)
    precision, muon_precision, format_why = _given_formats(recipe, begun)
    muon = recipe.optimizer.name == "muon"
    seconds: speed.Seconds = {}
    if not precision:
        stopwatch = speed.Stopwatch(recipe, processes.device)
        seconds = speed.format_seconds(stopwatch, muon=muon)
        precision = speed.fastest_format(seconds, "pass", "product")
        muon_precision = speed.fastest_format(seconds, "muon") if muon else precision
        format_why = _ratio(seconds, precision, "pass", "product")
    if threads is None:
        stopwatch = stopwatch or speed.Stopwatch(recipe, processes.device)
        by_threads = speed.thread_seconds(stopwatch, precision, speed.thread_counts())
        threads, threads_why = speed.fewest_threads(by_threads), _by_threads(by_threads)
        seconds = {**by_threads, **seconds}
    arithmetic = Arithmetic(precision=precision, muon_precision=muon_precision, threads=threads)
    parts = [f"Computes in {precision} ({format_why})"]
    if muon and muon_precision != precision:
        why = _ratio(seconds, muon_precision, "muon") if seconds else format_why
        parts.append(f"Muon's products in {muon_precision} ({why})")
    if threads_why:
        parts.append(f"on {_threads(threads)} ({threads_why})")
    return Decision(
        arithmetic=arithmetic,
        line=f"{', '.join(parts)}.",
        seconds={
            f"{t.what} in {t.precision}{'' if t.threads is None else f' on {_threads(t.threads)}'}": taken
            for t, taken in seconds.items()
            if math.isfinite(taken)
        },
    )


def _given_threads(recipe: Recipe, begun: State | None, processes: Processes) -> tuple[int | None, str]:
    """How many, and who says so; None: to be measured."""
    wanted = recipe.run.threads
    if begun is not None and wanted in (0, begun.recipe["run"].get("threads", 0)):
        # A run of before threads were noted had those that torch takes by itself.
        return begun.threads or _torchs(processes), AS_BEGUN if processes.device.type == "cpu" else ""
    if wanted:
        return wanted, "as asked"
    if processes.device.type != "cpu":
        return 0, ""
    named = [name for name in THREAD_VARIABLES if os.environ.get(name)]
    if named:
        return torch.get_num_threads(), named[0]
    return (None, "") if processes.count == 1 else (torch.get_num_threads(), "torch's choice")


def _torchs(processes: Processes) -> int:
    return torch.get_num_threads() if processes.device.type == "cpu" else 0


def _given_formats(recipe: Recipe, begun: State | None) -> tuple[str, str, str]:
    """That of passes, that of Muon's products, and who says so; "": to be measured."""
    wanted = recipe.run.precision
    if begun is not None and wanted in ("auto", begun.recipe["run"]["precision"]):
        return begun.precision, begun.muon_precision, AS_BEGUN
    return ("", "", "") if wanted == "auto" else (wanted, wanted, "as asked")


def _ratio(seconds: speed.Seconds, chosen: str, *whats: Literal["product", "muon", "pass"]) -> str:
    what = next(what for what in whats if any(trial.what == what for trial in seconds))
    taken = {trial.precision: value for trial, value in seconds.items() if trial.what == what}
    (other,) = set(FORMATS) - {chosen}
    times = taken[other] / taken[chosen]
    return (
        f"measured: {other} takes {times:.1f} times as long"
        if times > speed.MARGIN
        else f"measured: {other} is no faster"
    )


def _by_threads(seconds: speed.Seconds) -> str:
    told = [f"{taken * _MILLISECONDS:.0f} ms on {trial.threads}" for trial, taken in seconds.items()]
    return f"measured, one layer: {', '.join(told)}"


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}" if count else "torch's threads"
