"""A repair: a change, in memory, to one intercepted call of the user's pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from trainwright.core.tensors import Tensors


class Seam(StrEnum):
    """The interception points between the user's pipeline and its framework, with the roles of the call's arguments."""

    CONSTRUCT = "construct"  # a framework object is built: the keyword arguments, by their own names
    TRAINER = "trainer"  # the parts of training: model, train_dataset, eval_dataset, collator, metrics
    BATCH = "batch"  # a batch leaves the loader: the keys of the batch
    FORWARD = "forward"  # the model is about to be called: model, inputs
    # An activation is called: function, values, module (its facts' name), where (of a user's forward).
    ACTIVATION = "activation"
    CUT = "cut"  # user code takes a tensor off the graph: operation, where, value, result
    # A loss function is called: logits, targets, function (its name), number (of the call in the step), its
    # options; and of the answer: scale (1), trained (False: without its gradient), shown (False: as 0, with it).
    LOSS = "loss"
    PAIRING = "pairing"  # an operation makes all pairs of the rows of two tensors, (N, 1) and (N): left, right
    OPTIMIZER = "optimizer"  # the optimizer was built: optimizer, model
    METRICS = "metrics"  # the metric function is called: predictions, labels


class PartMissing(Exception):
    """The training lacks the part that a repair would change; the finding stands without a repair."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One intercepted call: its arguments by role, and the operations that can change framework objects."""

    seam: Seam
    given: Mapping[str, Any]
    tensors: Tensors = None  # type: ignore[assignment]
    """The operations on the arguments; None if they are not framework objects (CONSTRUCT)."""
    scope: Mapping[str, Any] | None = None
    """Objects of the user's script, by the expression that reaches them."""

    def __getitem__(self, role: str) -> Any:
        return self.given[role]

    def part(self, role: str) -> Any:
        """A part without which the change cannot be made.

        Raises:
            PartMissing: the training has none.
        """
        if self.given[role] is None:
            raise PartMissing(role)
        return self.given[role]

    def replace(self, **roles: Any) -> Call:
        """Return the call with some roles replaced."""
        return replace(self, given={**self.given, **roles})

    def without(self, *roles: str) -> Call:
        """Return the call with some roles left out."""
        return replace(self, given={k: v for k, v in self.given.items() if k not in roles})


@dataclass(frozen=True)
class Repair:
    """A change to every call at a seam, as a pure function that returns a new call."""

    does: str
    """What it does, as an imperative without a full stop: "cast the targets to int64"."""
    seam: Seam
    change: Callable[[Call], Call]
