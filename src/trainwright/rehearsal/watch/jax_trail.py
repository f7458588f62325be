"""The operations of a JAX function while it is traced, and where in them answers of weights meet labels."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

# Operations that leave the values as they are.
_SAME = {"convert_element_type", "reshape", "squeeze", "broadcast_in_dim", "copy", "stop_gradient"}
_FORMS = {"sub": "numbers", "mul": "weighed", "gather": "picked", "eq": "chosen"}


@dataclass(frozen=True, eq=False)
class Meeting:
    """Answers beside labels."""

    form: str
    """`numbers` (the labels are subtracted), `weighed` (they are multiplied with scores), `picked` (they choose among scores)
    or `chosen` (the highest score is compared with them)."""
    answer: Any
    target: Any
    inputs: list[Any]


@dataclass(frozen=True)
class _Value:
    """What an array was computed from."""

    sources: frozenset[int] = frozenset()
    meetings: tuple[Meeting, ...] = ()
    """Those behind which neither weights nor rows came in."""
    scores: Any = None
    """The scores of which it is the place of the highest."""


class Trail:
    """What each array is computed from, while operations are followed."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self._weights = frozenset(map(id, weights))
        self._known: dict[int, tuple[Any, _Value]] = {}

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Follow what is traced meanwhile, and what functions with rules or compilations of their own hold."""
        from jax._src.core import set_current_trace
        from jax._src.interpreters.partial_eval import DynamicJaxprTrace
        from jax.extend.core import jaxpr_as_fun

        original = DynamicJaxprTrace.process_primitive

        @functools.wraps(original)
        def process(trace: Any, primitive: Any, operands: Any, params: Any, *rest: Any) -> Any:
            operands = list(operands)
            if primitive.name in ("jit", "pjit"):
                with set_current_trace(trace):
                    return jaxpr_as_fun(params["jaxpr"])(*operands)
            made = original(trace, primitive, operands, params, *rest)
            value = self._follow(primitive.name, operands, params)
            self._known.update((id(one), (one, value)) for one in (made if primitive.multiple_results else [made]))
            return made

        def pass_on(trace: Any, primitive: Any, function: Any, *rest: Any, **_: Any) -> Any:
            with set_current_trace(trace):
                return function.call_wrapped(*rest[-1])

        rules: Any = {"process_custom_jvp_call": pass_on, "process_custom_vjp_call": pass_on}
        with mock.patch.multiple(DynamicJaxprTrace, process_primitive=process, **rules):
            yield

    def meetings(self, results: Sequence[Any]) -> list[Meeting]:
        """Where answers met labels in what gave these results."""
        return list(dict.fromkeys(meeting for one in results for meeting in self._value(one).meetings))

    def _value(self, one: Any) -> _Value:
        if id(one) not in self._known:
            is_source = id(one) in self._weights or np.size(one) > 1
            self._known[id(one)] = one, _Value(frozenset({id(one)}) if is_source else frozenset())
        return self._known[id(one)][1]

    def _follow(self, name: str, operands: list[Any], params: Any) -> _Value:
        values = [self._value(one) for one in operands]
        sources = frozenset().union(*(one.sources for one in values))
        scores = values[0].scores if name in _SAME else None
        if name == "argmax" and params["axes"] == (np.ndim(operands[0]) - 1,):
            scores = operands[0]
        meeting, pairs = self._meeting(name, operands, params, values), zip(operands, values, strict=True)
        if meeting is not None:
            meetings = [meeting]
        elif any(one.sources and not self._is_answer(one) and np.size(operand) > 1 for operand, one in pairs):
            meetings = []
        else:
            meetings = [met for one in values for met in one.meetings]
        return _Value(sources, tuple(dict.fromkeys(meetings)), scores)

    def _is_answer(self, value: _Value) -> bool:
        return bool(value.sources & self._weights) and bool(value.sources - self._weights)

    def _meeting(self, name: str, operands: list[Any], params: Any, values: list[_Value]) -> Meeting | None:
        form = _FORMS.get(name)
        if form is None:
            return None
        at = 0 if self._is_answer(values[0]) else 1
        (answer, target), labels = (operands[at], operands[1 - at]), values[1 - at].sources
        if not self._is_answer(values[at]) or not labels or labels & self._weights or np.size(target) < 2:
            return None
        if form == "chosen":
            answer = values[at].scores
            fits = answer is not None
        elif form == "picked":
            single = all(size == 1 for size in params["slice_sizes"])
            fits = single and math.prod(np.shape(target)[:-1]) == math.prod(np.shape(answer)[:-1])
        else:
            fits = np.shape(answer) == np.shape(target)
        if not fits:
            return None
        inputs = [one for key, (one, _) in self._known.items() if key in values[at].sources - self._weights]
        return Meeting(form, answer, target, [one for one in inputs if np.shape(one)[:1] == np.shape(answer)[:1]])
