"""The first rounds of a loop: finds what takes part in a step, and skips rounds that do not train."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trainwright.adapters.loop.body_run import run_body
from trainwright.adapters.loop.parts import find_parts
from trainwright.adapters.loop.turn import Turn
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.gates import Passed

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining


def find_first_parts(training: LoopTraining) -> None:
    """Run the unchanged loop to find the parts of a step, and advance to where it trains."""
    training.reset()
    with quiet():
        seed_everything(1)
        training.bare_failure = False
        training.known_parts = find_parts(training, functools.partial(_run_bare, training))
        training.bare_failure = training.known_parts.failure is not None
    training.reset()
    if training.known_parts.idle:
        _pass_idle_turns(training, training.known_parts.idle)
    elif training.known_parts.lead:
        _go_ahead(training, training.known_parts.lead)
    # From here on, the repairs are in force.
    if training.known_parts.failure is not None and training.active.all:
        seed_everything(1)
        training.known_parts = find_parts(training, functools.partial(_run_mended, training))
        training.reset()


def _pass_idle_turns(training: LoopTraining, idle: int) -> None:
    """Skip the rounds that do not train; if none trains at first, start after those that lead up to training."""
    for number in range(len(training.items)):
        passed = Passed()
        with tolerated():  # a round that raises is treated like one that does not train
            _run_bare(training, Turn(number), 0, passed)
        if "backward" not in passed.calls:
            training.silent.add(number)
        training.reset()
    if len(training.silent) < len(training.items):
        return
    training.silent = set()
    _go_ahead(training, idle)


def _go_ahead(training: LoopTraining, rounds: int) -> None:
    """Start this many rounds later, without updates."""
    seed_everything(1)
    for number in range(rounds):
        run_body(training, Turn(number % len(training.items)), number, live=False)
    training.body.keep()
    training.state.take_in()
    training.first = training.count


def _run_bare(training: LoopTraining, turn: Turn, number: int, passed: Passed) -> None:
    run_body(training, turn, number, live=False, passed=passed)


def _run_mended(training: LoopTraining, turn: Turn, number: int, passed: Passed) -> None:
    record, _ = training.observe(turn, number, passed=passed)
    if record.error is not None:
        raise record.error
