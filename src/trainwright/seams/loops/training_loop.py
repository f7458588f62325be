"""Which of the loops that a user's frames are running is the training: the one whose rounds go from update to update."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType

from trainwright.seams.loops.found_loops import (
    TRAINING_CALLS,
    Loop,
    Scope,
    called_in,
    hands_out_data,
    loops_at,
    reached,
    steps_optimizer,
    trains,
    trains_by_hand,
)
from trainwright.seams.source.places import is_users


def training_loop(frame: FrameType | None, *, backward: bool = False) -> Loop | None:
    """The loop, around what a frame of the user's or one of its callers runs, whose body is one training step.

    Args:
        backward: a backward pass was seen there: where no loop's code shows one (hooks that are called by their names),
            it is the innermost that hands out data, or counts.
    """
    around = [loop for one in _frames(frame) for loop in loops_at(one, one.f_lineno)]
    chosen = _chosen(around)
    if chosen is None and backward:
        chosen = next((loop for loop in around if hands_out_data(loop)), None)
        chosen = chosen or next((loop for loop in around if _counts(loop)), None)
    return chosen


def _counts(loop: Loop) -> bool:
    """Whether a loop goes round by a condition, or by numbers."""
    if isinstance(loop.node, ast.While):
        return True
    calls = [n.func for n in ast.walk(loop.node.iter) if isinstance(n, ast.Call)]
    return any(getattr(f, "id", getattr(f, "attr", "")) in ("range", "trange", "count") for f in calls)


def is_still_ahead(loop: Loop, frame: FrameType) -> bool:
    """Whether the step is not in sight yet: the loop's body leads to another loop that trains and was not entered, or
    what the frame runs is a generator that the body draws from."""
    between = []
    for one in _frames(frame):
        if one is loop.frame:
            break
        between.append(one)
    if any(one.f_code.co_flags & inspect.CO_GENERATOR for one in between):
        return True
    entered = [n.node for one in _frames(frame) for n in loops_at(one, one.f_lineno)]
    return any(not _is_a_part(inner, loop) for inner in _inner_trainings(loop, entered))


def loop_of_error(error: BaseException) -> Loop | None:
    """The training loop that an exception ended."""
    link: TracebackType | None = error.__traceback__
    links = []
    while link is not None:
        links.append(link)
        link = link.tb_next
    users = [one for one in reversed(links) if is_users(one.tb_frame.f_code.co_filename)]
    return _chosen([loop for one in users for loop in loops_at(one.tb_frame, one.tb_lineno)])


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers, those of the user's, as far as the script."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
            if frame.f_code.co_name == "<module>":
                return  # what runs the script is not part of it
        frame = frame.f_back


def _chosen(around: Sequence[Loop]) -> Loop | None:
    """Of loops around each other, the innermost first, the one whose body is a step.

    It is the innermost that hands out data, else the innermost, unless it only collects gradients for an update that a
    loop around it makes. A loop around it that trains besides (a critic's five steps, then the generator's) has the whole
    step. Steps by hand count only where nothing else trains: an attack on the inputs has the look of one.
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
    """The outermost loop of the same function that trains besides what the chosen one does, else that one."""
    for outer in chosen.around:
        rest = [s for s in outer.body if not s.lineno <= chosen.line <= (s.end_lineno or s.lineno)]
        if called_in(rest, chosen.scope, TRAINING_CALLS):
            place = chosen.around.index(outer)
            chosen = Loop(chosen.frame, outer, chosen.around[place + 1 :])
    return chosen


def _inner_trainings(loop: Loop, entered: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, Scope]]:
    """The loops that a loop's body leads to, go backward and step an optimizer, and were not entered."""
    for node, scope in reached(loop.node.body, loop.scope):
        if not isinstance(node, (ast.For, ast.While)) or any(node is known for known in entered):
            continue
        if called_in(node.body, scope, TRAINING_CALLS) and steps_optimizer(node.body, scope):
            yield node, scope


def _is_a_part(inner: tuple[ast.AST, Scope], loop: Loop) -> bool:
    """Whether a loop's body trains besides an inner loop of its own: the two are one step."""
    rest = [s for s in loop.node.body if not any(n is inner[0] for n, _ in reached([s], loop.scope))]
    return bool(called_in(rest, loop.scope, TRAINING_CALLS)) and steps_optimizer(rest, loop.scope)
