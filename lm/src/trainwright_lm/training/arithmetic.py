"""A run's number formats and threads: as requested, as before, or as measured to be the fastest. Decided once per run.

They alter the last digits of results, so a resumed run keeps them even if another choice has become faster.

Processor flags do not say what is fast: emulated bf16 makes a product up to 75 times as slow as fp32, and on a machine
with busy cores, two threads that wait for each other are slower than one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from trainwright_lm.config import Recipe
from trainwright_lm.network.loss import FORMATS, computing, training_loss
from trainwright_lm.network.model import Transformer
from trainwright_lm.progress import processors
from trainwright_lm.runs.checkpoint import State
from trainwright_lm.training.optimizers import orthogonal
from trainwright_lm.training.processes import Processes

# Runs per candidate, interleaved: the best or median of five is unlikely to be one that another process slowed down.
GOES = 5
# A candidate four times as slow in the better of two runs (after a warm-up run) has lost: its remaining runs and longer
# trials are skipped.
LOST = 4.0
GOES_TO_LOSE = 3
# fp32 is more exact, and fewer threads leave cores to others: bf16 or more threads must be faster by this factor.
MARGIN = 1.1
# Maximum product width on a CPU: takes 30 ms if bf16 is emulated (a third of a millisecond in fp32).
WIDEST_ON_CPU = 256
# Multiplications and additions of a trial pass on a CPU: 100 ms on one core of a laptop.
PASS_OPERATIONS = 5e9
PRODUCT_ROWS = 256
# The variables from which OpenMP and MKL, and so torch, take the number of threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
AS_BEGUN = "as this run began"
_MILLISECONDS = 1000


@dataclass(frozen=True, kw_only=True)
class TimedTrial:
    """One candidate to time."""

    what: Literal["product", "muon", "pass"]
    """One small product; a Newton-Schulz step of Muon; one layer and the loss, forward and backward."""
    precision: str
    threads: int | None = None
    """Measure elapsed seconds on this many threads; None: CPU seconds on one thread, unaffected by other processes."""


Clock = Callable[[TimedTrial], float]


def thread_counts() -> list[int]:
    """1, 2, 4, ... and the number of processors that this process may use."""
    held = processors()
    return sorted({*(1 << power for power in range(held.bit_length())), held})


class Stopwatch:
    """Times trials with the sizes of a recipe."""

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        self._device = device
        config, on_cpu = recipe.model, device.type == "cpu"
        width = min(config.width, WIDEST_ON_CPU) if on_cpu else config.width
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(0)
            # Muon stacks the matrices of all layers; on a GPU a single one would only measure how fast work is launched.
            stacked = 1 if on_cpu else 3 * config.layers
            self._matrices = torch.randn(stacked, width, width, device=device)
            self._rows = torch.randn(PRODUCT_ROWS, width, device=device)
            # One layer, and a vocabulary small enough that the output layer does not dominate.
            vocabulary_size = min(config.vocabulary_size, 4 * config.width)
            one = dataclasses.replace(config, layers=1, vocabulary_size=vocabulary_size)
            self._layer = Transformer(one).to(device)
            windows = recipe.data.micro_windows or recipe.data.windows
            if on_cpu:  # as many as a trial has time for
                operations = 6 * sum(parameter.numel() for parameter in self._layer.parameters()) * config.context
                windows = max(1, min(windows, int(PASS_OPERATIONS / operations)))
            self._tokens = torch.randint(0, vocabulary_size, (windows, config.context), device=device)

    def __call__(self, trial: TimedTrial) -> float:
        """The seconds of one run; infinite for a format that the device does not support."""
        run: Callable[[str], Any] = {"product": self._product, "muon": self._muon, "pass": self._pass}[trial.what]
        by_processor = trial.threads is None and self._device.type == "cpu"
        now = time.thread_time if by_processor else time.perf_counter
        with on_threads(1 if trial.threads is None else trial.threads):
            self._wait()
            begun = now()
            try:
                run(trial.precision)
                self._wait()
            except RuntimeError:
                return math.inf
            return now() - begun

    def _product(self, precision: str) -> Tensor:
        with torch.no_grad(), computing(precision, self._device):
            return F.linear(self._rows, self._matrices[0])

    def _muon(self, precision: str) -> Tensor:
        with torch.no_grad():
            return orthogonal(self._matrices, FORMATS[precision], steps=1)

    def _pass(self, precision: str) -> tuple[Tensor, ...]:
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):  # for dropout
            with computing(precision, self._device):
                loss = training_loss(self._layer, self._tokens, self._tokens)
            gradients: tuple[Tensor, ...] = torch.autograd.grad(loss, list(self._layer.parameters()))
        return gradients

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    """A context in which torch uses this many threads; 0: unchanged."""
    before = torch.get_num_threads()
    if count and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def _by_format(clock: Clock, what: Literal["product", "muon", "pass"]) -> dict[str, float]:
    """The best seconds of each format."""
    taken = _taken(clock, [TimedTrial(what=what, precision=precision) for precision in FORMATS])
    return {trial.precision: min(own) for trial, own in taken.items()}


def _taken(clock: Clock, trials: list[TimedTrial]) -> dict[TimedTrial, list[float]]:
    """Each trial's seconds without the warm-up run, interleaved; candidates that have lost are not run again."""
    taken: dict[TimedTrial, list[float]] = {trial: [] for trial in trials}
    for go in range(GOES + 1):
        quickest = min((min(own[1:]) for own in taken.values() if own[1:]), default=math.inf)
        for trial, own in taken.items():
            if go < GOES_TO_LOSE or min(own[1:]) < LOST * quickest:
                own.append(clock(trial))
    return {trial: own[1:] for trial, own in taken.items()}


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """The settings that alter the last digits of results, and the reason for them; the first record of the log."""

    precision: str
    """fp32 or bf16, for forward and backward passes."""
    muon_precision: str
    """The same for Muon's Newton-Schulz products."""
    threads: int
    """torch's CPU threads; 0: torch's default (on a GPU they do not matter)."""
    line: str = field(default="", compare=False)
    """The message for the user."""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """The measured times."""


def decide_arithmetic(recipe: Recipe, held: State | None, processes: Processes) -> Arithmetic:
    """Decide in the first process and send the decision to all others."""
    arithmetic: Arithmetic = processes.given(_decided(recipe, held, processes) if processes.first else None)
    return arithmetic


def for_evaluation(recipe: Recipe, trained_in: str, device: torch.device) -> str:
    """The format for evaluating a run's loss: as in training, except fp32 on a machine that emulates bf16."""
    if recipe.run.precision != "auto" or trained_in == "fp32":
        return trained_in
    taken = _by_format(Stopwatch(recipe, device), "product")
    return "fp32" if taken["bf16"] >= LOST * taken["fp32"] else trained_in


def _decided(recipe: Recipe, held: State | None, processes: Processes) -> Arithmetic:
    begun = held if held is not None and held.update else None
    clock = functools.cache(lambda: Stopwatch(recipe, processes.device))
    seconds, muon = dict[str, float](), recipe.optimizer.name == "muon"
    precision, muon_precision, why = _given_formats(recipe, begun)
    threads, threads_why = _given_threads(recipe, begun, processes)
    muon_why = why
    if not precision:
        # A pass in a format whose small products have lost already would take too long.
        precision, why = _fastest_format(clock(), seconds, "product", "pass")
        muon_precision, muon_why = _fastest_format(clock(), seconds, "muon") if muon else (precision, why)
    if threads is None:
        threads, threads_why = _fewest_threads(clock(), seconds, precision)
    parts = [f"Computes in {precision} ({why})"]
    if muon and muon_precision != precision:
        parts.append(f"Muon's products in {muon_precision} ({muon_why})")
    if threads_why:
        parts.append(f"on {_threads(threads)} ({threads_why})")
    return Arithmetic(
        precision=precision,
        muon_precision=muon_precision,
        threads=threads,
        line=f"{', '.join(parts)}.",
        seconds={what: taken for what, taken in seconds.items() if math.isfinite(taken)},
    )


def _fastest_format(
    clock: Clock, seconds: dict[str, float], *whats: Literal["product", "muon", "pass"]
) -> tuple[str, str]:
    """bf16 or fp32, by the first of these kinds of trial in which one has lost, or the last; and why."""
    taken: dict[str, float] = {}
    for what in whats:
        taken = _by_format(clock, what)
        seconds.update({f"{what} in {precision}": own for precision, own in taken.items()})
        if max(taken.values()) >= LOST * min(taken.values()):
            break
    chosen = "bf16" if taken["bf16"] * MARGIN < taken["fp32"] else "fp32"
    (other,) = set(FORMATS) - {chosen}
    times = taken[other] / taken[chosen]
    slower = f"takes {times:.1f} times as long" if times > MARGIN else "is no faster"
    return chosen, f"measured: {other} {slower}"


def _fewest_threads(clock: Clock, seconds: dict[str, float], precision: str) -> tuple[int, str]:
    """The smallest number of threads that is within the margin of the fastest, and why.

    The median decides, not the best, as training always shares the machine.
    """
    trials = [TimedTrial(what="pass", precision=precision, threads=count) for count in thread_counts()]
    taken = {trial.threads or 1: statistics.median(own) for trial, own in _taken(clock, trials).items()}
    seconds.update({f"pass in {precision} on {_threads(count)}": own for count, own in taken.items()})
    told = ", ".join(f"{own * _MILLISECONDS:.0f} ms on {count}" for count, own in taken.items())
    fewest = min(count for count, own in taken.items() if own <= MARGIN * min(taken.values()))
    return fewest, f"measured, one layer: {told}"


def _given_threads(recipe: Recipe, begun: State | None, processes: Processes) -> tuple[int | None, str]:
    """The number of threads and its origin; None: to be measured."""
    wanted = recipe.run.threads
    if begun is not None and wanted in (0, begun.recipe["run"].get("threads", 0)):
        # Older runs did not record threads; they used torch's default.
        own, why = (torch.get_num_threads(), AS_BEGUN) if processes.device.type == "cpu" else (0, "")
        return begun.threads or own, why
    if wanted:
        return wanted, "as asked"
    if processes.device.type != "cpu":
        return 0, ""
    named = [name for name in THREAD_VARIABLES if os.environ.get(name)]
    if named:
        return torch.get_num_threads(), named[0]
    return (None, "") if processes.count == 1 else (torch.get_num_threads(), "torch's choice")


def _given_formats(recipe: Recipe, begun: State | None) -> tuple[str, str, str]:
    """The format of passes, the format of Muon's products, and their origin; "": to be measured."""
    wanted = recipe.run.precision
    if begun is not None and wanted in ("auto", begun.recipe["run"]["precision"]):
        return begun.precision, begun.muon_precision, AS_BEGUN
    return ("", "", "") if wanted == "auto" else (wanted, wanted, "as asked")


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}" if count else "torch's threads"
