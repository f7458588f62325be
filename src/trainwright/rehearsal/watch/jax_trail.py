"""The operations of a JAX function one after the other, and where in them answers of weights meet labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Operations that stand for what they hold, and those that hold what is done again and again.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
          "custom_vjp_call_jaxpr"}  # fmt: skip
_LOOPS = {"scan", "while", "cond"}
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
# Operations that leave the values as they are.
_SAME = {"convert_element_type", "reshape", "squeeze", "broadcast_in_dim", "copy", "stop_gradient"}
# Where the answer of yes begins, of probabilities and of logits.
HALF = 0.5


@dataclass(frozen=True)
class Meeting:
    """Answers beside labels, by their places in the trail."""

    form: str
    """`picked` (the labels choose among scores), `weighed` (the labels are multiplied with them), `chosen` (the highest score
    is compared with them), `binary` or `logits` (which side of a limit is), or `numbers`."""
    answer: int
    target: int
    inputs: tuple[int, ...]


@dataclass
class Trail:
    """Values in the order in which they are computed."""

    values: list[Any] = field(default_factory=list)
    sources: list[frozenset[int]] = field(default_factory=list)
    """The arrays that each was computed from."""
    made: list[tuple[Any, list[int]] | None] = field(default_factory=list)
    """The operation, and its operands; None: it was given."""
    weights: frozenset[int] = frozenset()

    def add(self, value: Any, sources: frozenset[int] | None = None, made: tuple[Any, list[int]] | None = None) -> int:
        """Add a value; its place. Without sources it was given: an array is a source itself."""
        place = len(self.values)
        given = frozenset({place}) if np.size(value) > 1 else frozenset()
        self.values.append(value)
        self.sources.append(given if sources is None else sources)
        self.made.append(made)
        return place

    def follow(self, jaxpr: Any, given: Sequence[int]) -> list[int]:
        """Compute what a function returns; its places."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], given, strict=True))

        def read(one: Any) -> int:
            return self.add(one.val) if hasattr(one, "val") else known[one]

        for equation in jaxpr.eqns:
            operands = [read(one) for one in equation.invars]
            known.update(zip(equation.outvars, self._make(equation, operands), strict=True))
        return [read(one) for one in jaxpr.outvars]

    def _make(self, equation: Any, operands: list[int]) -> list[int]:
        primitive = equation.primitive
        inner = next((equation.params[name] for name in _INNER if name in equation.params), None)
        if primitive.name in _CALLS and inner is not None:
            constants = [self.add(one) for one in getattr(inner, "consts", ())]
            return self.follow(getattr(inner, "jaxpr", inner), [*constants, *operands])
        bound = primitive.get_bind_params(equation.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair in earlier versions
        made = primitive.bind(*functions, *(self.values[one] for one in operands), **params)
        sources = frozenset().union(*(self.sources[one] for one in operands))
        return [
            self.add(one, sources, (equation, operands)) for one in (made if primitive.multiple_results else [made])
        ]

    def meetings(self, results: Sequence[int]) -> Iterator[Meeting]:
        """Where what is computed with weights meets what is not, for the last time before these results."""
        needed, todo = set(), list(results)
        while todo:
            place = todo.pop()
            if place not in needed:
                needed.add(place)
                todo += self.made[place][1] if self.made[place] is not None else []  # type: ignore[index]
        users: dict[int, list[int]] = {}
        for place in sorted(needed):
            for operand in self.made[place][1] if self.made[place] is not None else ():  # type: ignore[index]
                users.setdefault(operand, []).append(place)
        for place in sorted(needed):
            found = self._meeting(place)
            if found is not None and self._is_last(place, users):
                yield found

    def _is_data(self, place: int) -> bool:
        return bool(self.sources[place]) and not self.sources[place] & self.weights and np.size(self.values[place]) > 1

    def _is_answer(self, place: int) -> bool:
        return bool(self.sources[place] & self.weights) and bool(self.sources[place] - self.weights)

    def _meeting(self, place: int) -> Meeting | None:
        equation, operands = self.made[place] or (None, [])
        if equation is None or len(operands) != 2:
            return None
        name = equation.primitive.name
        answer, target = operands if self._is_answer(operands[0]) else operands[::-1]
        if not self._is_answer(answer) or not self._is_data(target):
            return None
        form: str | None = {"sub": "numbers", "mul": "weighed"}.get(name)
        if name == "gather":
            form = "picked" if operands[0] == answer and self._picks(equation, *operands) else None
        elif name == "eq":
            form, answer = self._choice(answer)
        elif np.shape(self.values[answer]) != np.shape(self.values[target]):
            form = None
        if form is None or not np.ndim(self.values[answer]):
            return None
        rows = np.shape(self.values[answer])[0]
        inputs = sorted(self.sources[answer] - self.weights)
        return Meeting(form, answer, target, tuple(one for one in inputs if np.shape(self.values[one])[:1] == (rows,)))

    def _picks(self, equation: Any, operand: int, indices: int) -> bool:
        """Whether one of the scores of each row is taken."""
        shape = np.shape(self.values[operand])
        single = all(size == 1 for size in equation.params["slice_sizes"])
        return single and len(shape) > 1 and np.prod(np.shape(self.values[indices])[:-1]) == np.prod(shape[:-1])

    def _choice(self, place: int) -> tuple[str | None, int]:
        """What a choice was made from."""
        while self.made[place] is not None:
            equation, operands = self.made[place]  # type: ignore[misc]
            name = equation.primitive.name
            if name == "argmax":
                is_last = equation.params["axes"] == (np.ndim(self.values[operands[0]]) - 1,)
                return ("chosen" if is_last else None), operands[0]
            if name in ("gt", "ge") and np.size(self.values[operands[1]]) == 1:
                limit = getattr(equation.invars[1], "val", None)
                form = {0.0: "logits", HALF: "binary"}.get(float(limit)) if limit is not None else None
                return form, operands[0]
            if name == "round":
                return "binary", operands[0]
            if name not in _SAME:
                break
            place = operands[0]
        return None, place

    def _is_last(self, place: int, users: dict[int, list[int]]) -> bool:
        """Whether neither weights nor rows' values come in behind it: then it is no layer, and no label's part."""
        behind, todo = {place}, [place]
        while todo:
            for user in users.get(todo.pop(), ()):
                if user in behind:
                    continue
                behind.add(user)
                todo.append(user)
                equation, operands = self.made[user]  # type: ignore[misc]
                others = [one for one in operands if one not in behind and np.size(self.values[one]) > 1]
                comes_in = (self.sources[one] and not self._is_answer(one) for one in others)
                if equation.primitive.name in _LOOPS or any(comes_in):
                    return False
        return True
