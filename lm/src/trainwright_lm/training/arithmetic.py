"""A run's number formats and threads: as requested, as before, or as measured. Decided once per run.

They alter the last digits of results, so a resumed run keeps them even if another choice has become faster.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from trainwright_lm.config import Recipe
from trainwright_lm.network.loss import FORMATS
from trainwright_lm.runs.checkpoint import State
from trainwright_lm.training import speed
from trainwright_lm.training.processes import Processes

# The variables from which OpenMP and MKL, and so torch, take the number of threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
AS_BEGUN = "as this run began"
_MILLISECONDS = 1000


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """The settings that alter the last digits of results."""

    precision: str
    """fp32 or bf16, for forward and backward passes."""
    muon_precision: str
    """The same for Muon's Newton-Schulz products."""
    threads: int
    """torch's CPU threads; 0: torch's default (on a GPU they do not matter)."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The settings and the reason for them."""

    arithmetic: Arithmetic
    line: str = ""
    """The message for the user."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The measured times."""

    @property
    def record(self) -> dict[str, Any]:
        """The entry for the log."""
        return {**asdict(self.arithmetic), "line": self.line, "seconds": self.seconds}


def decided(recipe: Recipe, held: State | None, processes: Processes) -> Decision:
    """Decide in the first process and send the settings to all others."""
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
    """The format for evaluating a run's loss: as in training, except fp32 on a machine that emulates bf16."""
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
    """The number of threads and its origin; None: to be measured."""
    wanted = recipe.run.threads
    if begun is not None and wanted in (0, begun.recipe["run"].get("threads", 0)):
        # Older runs did not record threads; they used torch's default.
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
    """The format of passes, the format of Muon's products, and their origin; "": to be measured."""
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
