"""A loop in a script, lifted out of its frame, as the body of a training step."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from torch import nn

from trainwright.adapters.accelerated import framework_of, steps_at_end
from trainwright.core.finding import Place
from trainwright.seams.lift import items_of, lift_body
from trainwright.seams.place import is_users, show
from trainwright.seams.seen import Construction
from trainwright.seams.stand_in import Nothing
from trainwright.seams.training_loops import Loop, Statement, called_in, count_of, loops_at


class LiftedLoop:
    """The body of a `for` or `while` statement that a frame of the user's is running.

    Args:
        built: where the script's optimizers were built.
    """

    def __init__(self, loop: Loop, built: Sequence[Construction] = ()) -> None:
        self.loop = loop
        self._built = [one.line for one in built if one.frame_file == loop.file]
        self.where: Place | None = Place(show(loop.file), loop.line)
        self.drawn: dict[Any, Any] = {}
        self.modules: list[nn.Module] = []
        self.places: dict[str, Place] = {}
        self.steps = bool(called_in(loop.node.body, loop.scope, frozenset(["step"])))
        self._code = lift_body(loop)
        self._numbered = False
        self._callers = list(callers(loop.frame))
        self.framework = framework_of(self.scope.values())

    @property
    def draws(self) -> bool:
        """Whether the body draws its batch itself, from a loader's iterator."""
        return not isinstance(self.loop.node, ast.For) or self._is_counting()

    def _is_counting(self) -> bool:
        calls = [n.func for n in ast.walk(self.loop.node.iter) if isinstance(n, ast.Call)]  # type: ignore[union-attr]
        return any(
            getattr(f, "id", "") in ("range", "count") or getattr(f, "attr", "") == "count" for f in calls
        )

    @property
    def scope(self) -> dict[str, Any]:
        """What the loop's function and its callers can name, the loop's own first."""
        found: dict[str, Any] = {}
        for frame in reversed(self._callers):
            found |= {k: v for k, v in frame.f_locals.items() if not k.startswith("__")}
        here = {k: v for k, v in self.loop.scope.items() if not k.startswith("__")}
        found |= here
        for value in [*here.values()]:
            if hasattr(value, "__dict__") and is_users(_file_of(type(value))):
                found |= {k: v for k, v in vars(value).items() if k not in found}
        # What stands in for a tracker has every attribute that it is asked for.
        return {k: v for k, v in found.items() if not isinstance(v, Nothing)}

    def items(self) -> Iterator[Any]:
        """What the loop goes over, begun anew."""
        for count, item in enumerate(items_of(self.loop, self._code.namespace)):
            pair = isinstance(item, tuple) and len(item) == 2 and type(item[0]) is int
            self._numbered = pair and item[0] == count and (self._numbered or count == 0)
            yield item

    def item(self, drawn: Any, count: int) -> Any:
        """An item as the loop would hand it out the `count`-th time; `enumerate` numbers it anew."""
        return (count, drawn[1]) if self._numbered else drawn

    def batch_of(self, drawn: Any) -> Any:
        """The batch in an item."""
        return drawn[1] if self._numbered else drawn

    def with_batch(self, drawn: Any, batch: Any) -> Any:
        """An item with another batch."""
        return (drawn[0], batch) if self._numbered else batch

    def run(self, item: Any) -> None:
        """Run the body once."""
        self._code.run(item)

    def variables(self) -> dict[str, Any]:
        """The variables that the body runs in."""
        return self._code.namespace

    def place_of_variable(self, name: str) -> Place | None:
        """The last line of the body that assigns a variable."""
        lines = [n.lineno for n in ast.walk(self.loop.node) if isinstance(n, ast.Name) and n.id == name
                 and isinstance(n.ctx, ast.Store)]  # fmt: skip
        return Place(show(self.loop.file), max(lines)) if lines else None

    def keep(self) -> None:
        """From now on, the loop's variables start over with the values that they have."""
        self._code.keep()

    def start_over(self) -> None:
        """Give the loop's variables the values they had when it was lifted."""
        self._code.start_over()

    def updates_planned(self, training: Any) -> int | None:
        """How many updates the real training would make, where every loop around says how long it is."""
        rounds, epochs, window = self._rounds(training), self.epochs(), int(training.window)
        if rounds is None or epochs is None:
            return None
        if steps_at_end(self.scope.values()):  # the last micro-batches of an epoch are an update, too
            rounds, window = math.ceil(rounds / window), 1
        return math.ceil(rounds * epochs / window)

    def epochs(self) -> int | None:
        """How often the loops around lead to this one; None where one of them does not say."""
        found: int | None = 1
        for node, scope in self._around():
            if any(node.lineno < line <= (node.end_lineno or 0) for line in self._built):
                break  # each time round it begins anew, with another optimizer: folds, seeds, settings
            count = count_of(node, scope)
            found = found * count if found is not None and count is not None else None
        return found

    def _rounds(self, training: Any) -> int | None:
        """How often the loop itself goes round, each time it is reached."""
        return count_of(self.loop.node, self.loop.scope)

    def _around(self) -> Iterator[tuple[Statement, dict[str, Any]]]:
        """The loops around the training loop, with what their code can name, the innermost first."""
        for node in self.loop.around:
            yield node, self.loop.scope
        for frame in self._callers:
            for loop in loops_at(frame, frame.f_lineno):
                yield loop.node, loop.scope

    def schedule_pace(self, training: Any) -> float:
        """How often a schedule is moved on for each update."""
        calls = training.parts.passed.calls
        if "schedule" in calls:
            moved, schedules = int(calls.count("schedule")), len(training.parts.passed.schedules)
            return moved / max(1, schedules)
        names = {n for n, v in self.scope.items() if any(v is s for s in training.parts.schedules)}
        rounds = self._rounds(training)
        for node, _ in self._around():
            for call in ast.walk(node):
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr == "step"
                ):
                    owner = call.func.value
                    if getattr(owner, "id", getattr(owner, "attr", "")) in names:
                        window: int = training.window
                        return float(window / rounds) if rounds else 1.0
        return 0.0


def callers(frame: FrameType) -> Iterator[FrameType]:
    """The frames of the script that led to this one, the nearest first."""
    caller = frame.f_back if frame.f_code.co_name != "<module>" else None
    while caller is not None:
        if is_users(caller.f_code.co_filename):
            yield caller
        if caller.f_code.co_name == "<module>":
            return  # what runs the script is not part of it
        caller = caller.f_back


def _file_of(kind: type) -> str:
    import sys

    return getattr(sys.modules.get(kind.__module__), "__file__", None) or "<built-in>"
