"""Selects the training loop among the loops that the user's frames are running: the one whose rounds are updates."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FrameType

from trainwright.seams.loops.found_loops import (
    TRAINING_CALLS,
    Loop,
    called_in,
    hands_out_data,
    loops_at,
    reads_gradients_alone,
    steps_optimizer,
    trains,
    trains_by_hand,
)
from trainwright.seams.source.places import is_users


def training_loop(frame: FrameType | None, *, backward: bool = False) -> Loop | None:
    """The loop, around the current line of a user's frame or one of its callers, whose body is one training step.

    Args:
        backward: a backward pass was observed: if no loop's code shows one (hooks called by name), the training loop is
            the innermost that yields data or counts.
    """
    loops = (loop for one in _frames(frame) for loop in loops_at(one, one.f_lineno))
    around = [loop for loop in loops if not reads_gradients_alone(loop)]
    chosen = _chosen(around)
    if chosen is None and backward:
        chosen = next((loop for loop in around if hands_out_data(loop)), None)
        chosen = chosen or next((loop for loop in around if _counts(loop)), None)
    return chosen


def _counts(loop: Loop) -> bool:
    """Whether a loop runs by a condition or over numbers."""
    if isinstance(loop.node, ast.While):
        return True
    calls = [n.func for n in ast.walk(loop.node.iter) if isinstance(n, ast.Call)]
    return any(getattr(f, "id", getattr(f, "attr", "")) in ("range", "trange", "count") for f in calls)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A user's frame and the user's frames that called it, up to the script."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
            if frame.f_code.co_name == "<module>":
                return  # frames that run the script are not part of it
        frame = frame.f_back


def _chosen(around: Sequence[Loop]) -> Loop | None:
    """The loop whose body is a step, among nested loops, the innermost first.

    It is the innermost that yields data, otherwise the innermost, unless that only accumulates gradients for an update
    made by a loop around it. A loop around it that also trains (a critic's five steps, then the generator's) contains
    the whole step. Manual steps count only if nothing else trains, because an adversarial attack on the inputs looks
    like one.
    """
    found = [loop for loop in around if trains(loop)] or [loop for loop in around if trains_by_hand(loop)]
    if not found:
        return None
    with_data = next((loop for loop in found if hands_out_data(loop)), None)
    first = with_data or found[0]
    stepping = (loop for loop in found[found.index(first) :] if steps_optimizer(loop.node.body, loop.scope))
    chosen = next(stepping, first)
    return chosen if with_data is not None else _with_its_rest(chosen)


def _with_its_rest(chosen: Loop) -> Loop:
    """The outermost loop of the same function that also trains apart from the chosen one, otherwise the chosen one."""
    for outer in chosen.around:
        rest = [s for s in outer.body if not s.lineno <= chosen.line <= (s.end_lineno or s.lineno)]
        if called_in(rest, chosen.scope, TRAINING_CALLS):
            place = chosen.around.index(outer)
            chosen = Loop(chosen.frame, outer, chosen.around[place + 1 :])
    return chosen
