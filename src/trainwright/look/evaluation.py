"""Looks closely at a training's first evaluations, as they happen: what they compare, and what they count from pass to pass.

Every tensor derived from a model's answers is marked with the calls that gave them. If a marked tensor is compared with an
unmarked one, subtracted from it or passed to a loss with it, those calls are evaluated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.weak import WeakTensorKeyDictionary

from trainwright.core import Facts, Place
from trainwright.look.called import has_mode_on_top, is_compiled
from trainwright.look.counting import Tallies
from trainwright.seams.source.places import user_frame, user_place
from trainwright.seams.torch.loss import LOSSES
from trainwright.seams.torch.marks import Mark, ModelCall, comparison_of, largest_of, scores_for
from trainwright.seams.torch.modes import Leaving, original
from trainwright.stages import Comparison, EvaluationFacts
from trainwright.tensors.torch.objects import tensors_in
from trainwright.tensors.torch.transforms import within_transform

# Passes that are watched: three begin where two have ended. Calls of each, and comparisons of all.
MOST_PASSES, MOST_CALLS, MOST_COMPARISONS = 3, 128, 512
# Calls without gradients of models that no optimizer holds, as a teacher's, after which none is expected any more.
MOST_VAIN = 64
# Values of answers that are kept, for a comparison of a whole set.
MOST_VALUES = 4_000_000
_EQUALITIES = {"eq": "==", "__eq__": "==", "ne": "!=", "__ne__": "!=", "not_equal": "!="}
_COMPARISONS = _EQUALITIES | dict.fromkeys(("sub", "__sub__", "__rsub__", "rsub", "subtract"), "-")
# A result that only takes a tensor's shape or type does not depend on its values.
_SHAPED_LIKE = ("expand_as", "view_as", "reshape_as", "type_as", "to")
_NEW_LIKE = ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "new_zeros", "new_ones",
             "new_full", "new_tensor", "new_empty")  # fmt: skip
_TAKEN_OUT = ("numpy", "tolist", "__array__", "item", "__int__", "__float__", "__format__")
_LARGEST_OF = ("argmax", "max")

Guard = Callable[[Callable[..., Any]], Callable[..., Any]]


class EvaluationWatch(Leaving):
    """Watches real evaluations between the calls of their models, which run as without it. Nothing of the script's is replaced.

    Args:
        guard: what makes a function of ours one that raises nothing, and whose calls are not watched.
        is_off: whether what happens now is not the script's.
    """

    def __init__(self, guard: Guard, is_off: Callable[[], bool]) -> None:
        super().__init__()
        self.calls: list[ModelCall] = []
        self.comparisons: list[tuple[ModelCall, Comparison]] = []
        self.tallies = Tallies()
        self.turn = 0
        self._is_off = is_off
        self._note, self._count = guard(self._note_comparison), guard(self._count_call)
        self._marks: Any = WeakTensorKeyDictionary()
        self._open: ModelCall | None = None
        self._hooks = []
        self._is_aside = False

    def leave(self) -> None:
        """Watch no longer; where a mode of the script's lies over this one, it stays there without effect."""
        for call in self.calls:
            call.scores = None
        if not self._is_aside and not self._step_aside():
            self.retire()
        self._is_aside, self._open = False, None

    def _step_aside(self) -> bool:
        if torch.overrides._get_current_function_mode() is self:
            self.__exit__(None, None, None)
            self._is_aside = True
        return self._is_aside

    # The model's calls

    def begin_call(self, module: nn.Module) -> None:
        """A model is called from outside any other."""
        if self._open is None and not within_transform() and next(module.parameters(), None) is not None:
            self._open = ModelCall(number=len(self.calls), turn=self.turn, where=user_place(sys._getframe(1)))
            self.calls.append(self._open)
            if not self._step_aside():
                self.retire()

    def end_call(self, args: Any, kwargs: Any, output: Any) -> None:
        """The model has answered, or raised."""
        call, self._open = self._open, None
        if call is None:
            return
        if self._is_aside:
            self._is_aside = False
            self.__enter__()
        found = tensors_in(output)
        call.scores = next((t.detach() for t in found if t.is_floating_point() and t.dim()), None)
        held = 0
        for one in reversed(self.calls):
            held += one.scores.numel() if one.scores is not None else 0
            one.scores = one.scores if held <= MOST_VALUES or one is call else None
        before = frozenset(c for t in tensors_in((args, kwargs)) if (m := self._marks.get(t)) for c in m.calls)
        for tensor in found:
            is_loss = tensor.is_floating_point() and not tensor.dim()
            self._marks[tensor] = Mark(frozenset([call]) | before, measured=is_loss)
            if is_loss:
                self._count_call(call.number)

    # How its outputs are used

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.is_passive or len(self.comparisons) > MOST_COMPARISONS or self._is_off() or within_transform():
            return func(*args, **kwargs)
        func = original(func)
        name = getattr(func, "__name__", "")
        if name in _COMPARISONS:
            return self._compare(func, name, args, kwargs)
        result = func(*args, **kwargs)
        sources = tensors_in((args[:1] if name in _SHAPED_LIKE else args, kwargs)) if name not in _NEW_LIKE else []
        marks = [m for t in sources if (m := self._marks.get(t)) is not None]
        if marks:
            self._follow(func, name, args, kwargs, result, marks)
        return result

    def _follow(self, func: Any, name: str, args: Any, kwargs: Any, result: Any, marks: list[Mark]) -> None:
        calls, measured = frozenset(c for m in marks for c in m.calls), any(m.measured for m in marks)
        if func in LOSSES and any(t not in self._marks for t in tensors_in((args[1:], kwargs))):
            self._meet(calls)
            measured = True
        elif name in _TAKEN_OUT and measured:
            self._meet(calls)
        columns, at = next(((m.columns, m.indexed_at) for m in marks if m.columns), (None, None))
        if name in _LARGEST_OF and (over := _columns(args, kwargs)) is not None:
            columns, at = over, user_place(sys._getframe(2))
        for tensor in tensors_in(result):
            self._marks[tensor] = Mark(calls, measured, columns, at)

    def _compare(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        word, given = _COMPARISONS[name], list(args[:2]) if len(args) > 1 else [*args[:1], kwargs.get("other")]
        pair = [largest_of(value) for value in given]
        marks = [self._marks.get(t) if isinstance(t, torch.Tensor) else None for t in pair]
        known = [mark for mark in marks if mark is not None]
        side = 0 if marks[0] is not None else 1
        predictions, labels = pair[side], pair[1 - side]
        meets = len(known) == 1 and not known[0].measured and isinstance(labels, torch.Tensor) and labels.dim() > 0
        result = func(*args, **kwargs)  # of what it raises, `look/ending.py` reads these variables
        if meets:
            of_pair = predictions is not given[side]
            self._note(word, predictions, labels, result, known[0], user_place(sys._getframe(2)), of_pair)
            self._meet(known[0].calls)
        calls, measured = frozenset(c for m in known for c in m.calls), any(m.measured for m in known)
        for tensor in tensors_in(result) if known else ():
            is_score = word != "-" if meets else measured
            self._marks[tensor] = Mark(calls, is_score, known[0].columns, known[0].indexed_at)
        return result

    def _meet(self, calls: frozenset[ModelCall]) -> None:
        self._count(max(call.number for call in calls))

    def _count_call(self, number: int) -> None:
        self.tallies.note(user_frame(sys._getframe(1)), self.turn, number)

    def _note_comparison(
        self, word: str, predictions: Any, labels: Any, result: Any, mark: Mark, where: Place | None, of_pair: bool
    ) -> None:
        scores = scores_for(predictions, labels, mark)
        made = comparison_of(word, predictions, labels, result, mark, scores, where, None)
        self.comparisons.append((max(mark.calls, key=lambda call: call.number), replace(made, of_pair=of_pair)))


def _columns(args: Any, kwargs: Mapping[str, Any]) -> int | None:
    """The size of the axis over which the maximum is taken; None for the whole tensor."""
    axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    values = args[0] if args else kwargs.get("input")
    if not isinstance(axis, int) or isinstance(axis, bool) or not isinstance(values, torch.Tensor):
        return None
    return int(values.shape[axis]) if values.dim() else None


class Evaluating:
    """The looks at a training's first evaluations: from a call without gradients on, until the training goes on."""

    def __init__(self, guard: Guard = lambda function: function, is_off: Callable[[], bool] = lambda: False) -> None:
        self._given = guard, is_off
        self._begin()

    def _begin(self) -> None:
        self._watch = EvaluationWatch(*self._given)
        self._stands = self._is_over = False
        self._is_new = True
        self._calls = self._vain = 0

    def begin_call(self, module: nn.Module, list_held: Callable[[], set[int]], *, may_watch: bool) -> None:
        """A module is called.

        Args:
            list_held: the parameters that optimizers hold, by `id`.
        """
        self._look_for_evaluation(module, list_held, may_watch)
        if self._stands:
            self._watch.begin_call(module)

    def end_call(self, args: Any, kwargs: Any, output: Any) -> None:
        """It has answered; None: it has raised."""
        if self._stands:
            self._watch.end_call(args, kwargs, output)

    def _look_for_evaluation(self, module: nn.Module, list_held: Callable[[], set[int]], may_watch: bool) -> None:
        if torch.is_grad_enabled() or self._calls > MOST_CALLS:
            self._leave()
        if torch.is_grad_enabled() or self._is_over or not may_watch or self._calls > MOST_CALLS:
            return
        if self._stands:
            self._calls += 1
            return
        if not {id(p) for p in module.parameters()} & list_held():
            self._vain += 1
            self._is_over = self._vain > MOST_VAIN
            return
        self._watch.turn += self._is_new and bool(self._watch.calls)
        self._is_new, self._calls = False, self._calls + 1
        self._is_over = self._watch.turn >= MOST_PASSES or has_mode_on_top() or is_compiled(module)
        if not self._is_over:
            self._stands = True
            self._watch.__enter__()

    def note_update(self) -> None:
        """An optimizer steps: what is evaluated next is another pass."""
        self._leave()
        self._is_new, self._calls = True, 0

    def end_training(self) -> dict[type[Facts], Facts]:
        """What was seen of the training that ends; what comes belongs to another one."""
        self._leave()
        watch, tallies = self._watch, self._watch.tallies.each
        self._begin()
        if not watch.calls:
            return {}
        known = {(one.operation, one.where): one for _, one in reversed(watch.comparisons)}
        found = EvaluationFacts(
            in_loop=True,
            evaluated_at=tuple(dict.fromkeys(call.where for call in watch.calls if call.where is not None)),
            batches=sum(call.turn == 0 for call in watch.calls),
            comparisons=tuple(reversed(known.values())),
            counters=tuple(found for one in tallies if (found := one.find_counter()) is not None),
            quotients=tuple(found for one in tallies for found in one.list_quotients(watch.comparisons)),
        )
        return {EvaluationFacts: found}

    def _leave(self) -> None:
        if self._stands:
            self._stands = False
            self._watch.leave()
