"""A loop in a script, lifted out of its frame, as the body of a training step."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from trainwright.adapters.loop.accelerate import framework_of, steps_at_end
from trainwright.adapters.loop.words import WITH_ACCELERATE, WORDS
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.listening.seen import Construction
from trainwright.seams.loops.between_passes import clears_between_passes
from trainwright.seams.loops.discarded_training import names_trained_later
from trainwright.seams.loops.found_loops import Loop, Statement, called_in, callers, loops_at, rebound_by_hand
from trainwright.seams.loops.lengths import count_of
from trainwright.seams.loops.lifting import items_of, lift_body
from trainwright.seams.loops.spent_iterators import spent_iterator
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import names_read

# Number of items to keep from an iterator that can be consumed only once (tqdm(enumerate(loader)), made before the
# loop).
MOST_KEPT = 16


class LiftedBody:
    """The body of a `for` or `while` statement that a user's frame is running.

    Args:
        built: where the script's optimizers were built.
    """

    def __init__(self, loop: Loop, built: Sequence[Construction] = ()) -> None:
        self.loop = loop
        self._built = [one.line for one in built if one.frame_file == loop.file]
        self.where: Place | None = Place(show(loop.file), loop.line)
        self.drawn: dict[Any, Any] = {}
        self.keeps_draw = False
        self.modules: list[nn.Module] = []
        by_hand = rebound_by_hand(loop)
        self.places: dict[str, Place] = {"update_by_hand": Place(show(loop.file), by_hand)} if by_hand else {}
        stepping, training = (called_in(loop.node.body, loop.scope, frozenset([n])) for n in ("step", "backward"))
        self.steps = bool(stepping) or not training  # code that shows neither does both somewhere unreadable
        self._code = lift_body(loop)
        self._first = _number_now(loop)
        self._stride, self._most, self._count = 1, 0, 0
        self._kind = ""
        self._given: list[Any] = []
        self.indexes = True
        """Whether the loop counts: the number decides which rows a turn gets."""
        self._callers = list(callers(loop.frame))
        self.trained_later = names_trained_later(loop, self._callers)
        self.spent = spent_iterator(loop)
        self.clears_between_passes = clears_between_passes(loop, self._callers)
        files = {loop.file, *(frame.f_code.co_filename for frame in self._callers)}
        self.names_read = frozenset(name for file in files for name in names_read(file))
        self.framework = framework_of(self.scope.values())
        self.automatic_steps = False
        self.words = WITH_ACCELERATE if self.framework == "accelerate" else WORDS

    @property
    def draws(self) -> bool:
        """Whether the body draws its batch itself from a loader's iterator."""
        return not isinstance(self.loop.node, ast.For) or self.counts or self._is_range()

    @property
    def counts(self) -> bool:
        """Whether the loop iterates over integers."""
        return self._kind == _COUNTING

    def _is_range(self) -> bool:
        calls = [n.func for n in ast.walk(self.loop.node.iter) if isinstance(n, ast.Call)]  # type: ignore[union-attr]
        names = {getattr(f, "id", getattr(f, "attr", "")) for f in calls}
        return bool(names & {"range", "trange", "count"})

    @property
    def scope(self) -> dict[str, Any]:
        """The names in the loop's function and its callers, the loop's own first."""
        found: dict[str, Any] = {}
        for frame in reversed(self._callers):
            found |= {k: v for k, v in frame.f_locals.items() if not k.startswith("__")}
        here = {k: v for k, v in self.loop.scope.items() if not k.startswith("__")}
        found |= here
        for value in [*here.values()]:
            if hasattr(value, "__dict__") and is_users(_file_of(type(value))):
                found |= {k: v for k, v in vars(value).items() if k not in found}
        # A tracker's stand-in has every attribute that it is asked for.
        return {k: v for k, v in found.items() if not isinstance(v, Nothing)}

    def items(self) -> Iterator[Any]:
        """What the loop iterates over, restarted; a single-use iterator yields its first items again."""
        drawn: list[int | None] = []
        for item in self._replayed():
            kind, number = _numbering(item)
            drawn.append(number)
            self._kind = kind if kind == self._kind or len(drawn) == 1 else ""
            if number is not None and len(drawn) <= 2:
                self._count_from(number, number - (drawn[0] or 0))
            if None not in drawn and number != (drawn[0] or 0) + self._stride * (len(drawn) - 1):
                self._kind = ""
            yield item

    def _replayed(self) -> Iterator[Any]:
        """The items; if their source is exhausted for good, the earlier items instead.

        A loader that a repair left with fewer batches restarts and yields only those.
        """
        count = 0
        for count, item in enumerate(items_of(self.loop, self._code.namespace), start=1):
            if len(self._given) < min(count, MOST_KEPT):
                self._given.append(item)
            yield item
        if count < len(self._given) and not any(True for _ in items_of(self.loop, self._code.namespace)):
            yield from self._given[count:]

    def _count_from(self, number: int, stride: int) -> None:
        """Record where the numbers start (the loop's position, if it has begun), their increment, and their count."""
        self._stride = stride or 1
        self._first = number - stride if self._first is None else self._first
        whole = count_of(self.loop.node, self.loop.scope)
        self._most = (whole - (self._first - number + stride) // self._stride) if whole else 0

    def item(self, drawn: Any, count: int) -> Any:
        """An item as the loop would yield it the `count`-th time: its number advances, whichever batch it has."""
        self._count = count
        if self._kind == _ENUMERATED:
            return (self._number(count), drawn[1])
        return self._number(count) if self.counts and not self.indexes else drawn

    def _number(self, count: int) -> int:
        """The number that the loop would have reached, while it runs."""
        first, most = self._first or 0, self._most
        return first + self._stride * (count % most if most > 0 else count)

    def rounds_left(self, count: int) -> int | None:
        """How many rounds the loop's pass still has when it has made `count`; None if it does not number them."""
        return self._most - count % self._most if self._kind and self._most > 0 else None

    def batch_of(self, drawn: Any) -> Any:
        """The batch in an item."""
        return drawn[1] if self._kind == _ENUMERATED else drawn

    def with_batch(self, drawn: Any, batch: Any) -> Any:
        """An item with another batch."""
        return (drawn[0], batch) if self._kind == _ENUMERATED else batch

    def run(self, item: Any, turn: int) -> None:
        """Run the body once."""
        sites: Counter[int] = Counter()

        def draw(iterator: Any, *default: Any) -> Any:
            key = (turn, id(iterator), sites[id(iterator)])
            sites[id(iterator)] += 1
            if key not in self.drawn:
                self.keeps_draw = True
                try:
                    self.drawn[key] = (iterator, passed_on(next, iterator, *default))
                finally:
                    self.keeps_draw = False
            return self.drawn[key][1]

        self._code.run(item, self._number(self._count) if self.counts else item, draw)

    def variables(self) -> dict[str, Any]:
        """The variables that the body runs with."""
        return self._code.namespace

    def place_of_variable(self, name: str) -> Place | None:
        """The last line of the body that assigns a variable."""
        lines = [
            n.lineno
            for n in ast.walk(self.loop.node)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        return Place(show(self.loop.file), max(lines)) if lines else None

    def keep(self) -> None:
        """Make the current values of the loop's variables those that `start_over` restores."""
        self._code.keep()

    def start_over(self) -> None:
        """Restore the values that the loop's variables had when it was lifted."""
        self._code.start_over()

    def updates_planned(self, training: Any) -> int | None:
        """How many updates the real training would make, if the lengths of all enclosing loops are known."""
        rounds, epochs, window = self._rounds(), self.epochs(), int(training.rounds)
        if rounds is None or epochs is None:
            return None
        if steps_at_end(self.scope.values()):  # the last micro-batches of an epoch also make an update
            rounds, window = math.ceil(rounds / window), 1
        return math.ceil(rounds * epochs / window)

    def epochs(self) -> int | None:
        """How many times the enclosing loops reach this one; None if a length is unknown."""
        found: int | None = 1
        for node, scope in self._around():
            if any(node.lineno < line <= (node.end_lineno or 0) for line in self._built):
                break  # each round trains again with another optimizer: folds, seeds, settings
            count = count_of(node, scope)
            found = found * count if found is not None and count is not None else None
        return found

    def _rounds(self) -> int | None:
        """The number of rounds of the loop itself, each time it is reached."""
        return count_of(self.loop.node, self.loop.scope)

    def _around(self) -> Iterator[tuple[Statement, dict[str, Any]]]:
        """The loops around the training loop, with the names their code can see, the innermost first."""
        for node in self.loop.around:
            yield node, self.loop.scope
        for frame in self._callers:
            for loop in loops_at(frame, frame.f_lineno):
                yield loop.node, loop.scope

    def schedule_pace(self, training: Any) -> float:
        """How many times a schedule steps per update."""
        calls = training.parts.passed.calls
        if "schedule" in calls:
            moved, schedules = int(calls.count("schedule")), len(training.parts.passed.schedules)
            return moved / max(1, schedules)
        names = {n for n, v in self.scope.items() if any(v is s for s in training.parts.schedules)}
        rounds = self._rounds()
        for node, _ in self._around():
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                    owner = call.func.value
                    if getattr(owner, "id", getattr(owner, "attr", "")) in names:
                        window: int = training.rounds
                        return float(window / rounds) if rounds else 1.0
        return 0.0


# What a loop iterates over: integers, or pairs of a number and a batch.
_COUNTING, _ENUMERATED = "counting", "enumerated"


def _numbering(item: Any) -> tuple[str, int | None]:
    """How an item is numbered, and its number."""
    if type(item) is int:
        return _COUNTING, item
    if isinstance(item, tuple) and len(item) == 2 and type(item[0]) is int:
        return _ENUMERATED, item[0]
    return "", None


def _number_now(loop: Loop) -> int | None:
    """The loop's current number; None if it has not begun or does not number its rounds."""
    node, frame = loop.node, loop.frame
    if not isinstance(node, ast.For) or frame.f_lineno <= (node.iter.end_lineno or node.lineno):
        return None
    first = node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
    value = loop.scope.get(first.id) if isinstance(first, ast.Name) else None
    return value if type(value) is int else None


def _file_of(kind: type) -> str:
    import sys

    return getattr(sys.modules.get(kind.__module__), "__file__", None) or "<built-in>"
