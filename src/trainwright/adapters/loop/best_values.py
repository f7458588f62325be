"""What a loop keeps of its best evaluation: the best value, and the weights that had it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from trainwright.core.finding import Place
from trainwright.seams.loops.best_so_far import Improvement, assigned, copies, improvements, read_later
from trainwright.seams.loops.found_loops import reached, resolve
from trainwright.seams.loops.lifted_pass import LiftedPass
from trainwright.seams.source.places import show
from trainwright.stages.evaluation import BestSoFar, Comparison, KeptWeights

# A state dict may be part of a checkpoint, with the optimizer's.
_DEPTH = 3
# An accuracy over this many rows equals another quantity only by chance.
FEW_ROWS = 8


class BestValues:
    """The comparisons with a best value in a pass, from before its first run.

    Args:
        optimizers: those whose parameters are updated in place.
    """

    def __init__(self, lifted: LiftedPass, optimizers: Sequence[Any]) -> None:
        self._lifted = lifted
        self._found = improvements(lifted.statements, lifted.namespace)
        self._starts = [_number(one.now) for one in self._found]
        self._values: list[float | None] = []
        self.kept: tuple[KeptWeights, ...] = ()
        """The weights kept of the best evaluation that share their memory with the trained model."""
        self._live = {
            _storage(p)
            for o in optimizers
            for group in getattr(o, "param_groups", ())
            for p in group["params"]
            if isinstance(p, torch.Tensor) and p.requires_grad
        } - {0}

    def look(self) -> None:
        """Record the compared values and the kept weights after a pass.

        The values of functions' own variables are unknown.
        """
        namespace = self._lifted.namespace
        known = (resolve(one.value, namespace) if one.scope is namespace else None for one in self._found)
        self._values = [_number(value) for value in known]
        self.kept = tuple(self._kept_weights())

    def _kept_weights(self) -> Iterator[KeptWeights]:
        own = [node for node, _ in reached(self._lifted.statements, self._lifted.namespace, objects=True)]
        found: set[tuple[str, int]] = set()
        for one in self._found:
            if any(isinstance(n, (ast.Break, ast.Return, ast.Raise)) for s in one.branch for n in ast.walk(s)):
                continue  # training ends there, and the weights stay as they are
            for node, scope in reached(one.branch, one.scope, objects=True):
                for target, value in assigned(node):
                    kept = None if copies(value) else self._kept(target, value, replace(one, scope=scope), own)
                    if kept is not None and (kept.name, kept.where.line) not in found:
                        found.add((kept.name, kept.where.line))
                        yield kept

    def _kept(self, target: ast.expr, value: ast.expr, one: Improvement, own: Sequence[ast.AST]) -> KeptWeights | None:
        local = isinstance(target, ast.Name) and one.scope is not self._lifted.namespace
        held = None if local else resolve(target, one.scope)
        shared = sum(_storage(t) in self._live for t in _tensors(held))
        used = read_later(target, one, own, self._rest(target)) if shared else 0
        if not used:
            return None
        file = self._file(one)
        return KeptWeights(
            name=ast.unparse(target),
            written=ast.unparse(value),
            is_module=isinstance(held, nn.Module),
            tensors=shared,
            where=Place(show(file), value.lineno),
            used_at=Place(show(file), used),
        )

    def _rest(self, target: ast.expr) -> list[tuple[ast.AST, Any]]:
        """The code after the loop that can use a variable: only the loop's own function can use its names."""
        nodes = [
            pair
            for statement, code in zip(self._lifted.rest_statements, self._lifted.rest)
            for pair in reached([statement], code.namespace, objects=True)
        ]
        named = isinstance(target, ast.Name)
        return [(n, scope) for n, scope in nodes if not named or scope is self._lifted.namespace]

    def _file(self, one: Improvement) -> str:
        own = one.scope is self._lifted.namespace
        return self._lifted.loop.file if own else str(one.scope.get("__file__") or self._lifted.loop.file)

    def facts(self, comparisons: Sequence[Comparison], loaders: Sequence[Any]) -> tuple[BestSoFar, ...]:
        """Facts about the comparisons.

        Args:
            comparisons: those of predictions and labels in the last pass.
            loaders: those that the passes drew from.
        """
        sizes = [len(v.dataset) for v in loaders if hasattr(v.dataset, "__len__")]
        shares = set(_accuracies(comparisons, sizes))
        return tuple(
            BestSoFar(
                value=ast.unparse(one.value),
                best=ast.unparse(one.best),
                greater=one.greater,
                start=start,
                now=now,
                accuracy=now is not None and any(math.isclose(now, share, rel_tol=1e-4) for share in shares),
                where=Place(show(self._file(one)), one.line),
            )
            for one, start, now in zip(self._found, self._starts, self._values or [None] * len(self._found))
        )


def _accuracies(comparisons: Sequence[Comparison], sizes: Sequence[int]) -> Iterator[float]:
    """The shares of equal elements per line of the script, over the compared rows or a whole set, also in percent."""
    lines: dict[Place | None, list[tuple[float, int]]] = {}
    for one in comparisons:
        if one.equal_share is not None and one.operation in ("==", "!="):
            lines.setdefault(one.where, []).append((one.equal_share, math.prod(one.result)))
    for compared in lines.values():
        rows, equal = sum(n for _, n in compared), sum(share * n for share, n in compared)
        share = equal / rows if rows else 0.0
        means = sum(s for s, _ in compared) / len(compared)
        if rows < FEW_ROWS or min(share, 1 - share, abs(share - 0.5)) < 1e-6:
            continue  # an error rate, or another quantity, is the same number
        for accuracy in (share, means, *(equal / size for size in sizes if size >= rows)):
            yield from (accuracy, 100 * accuracy)


def _tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors of a state dict, a model, a checkpoint or a list."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.parameters()
    elif depth < _DEPTH and isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors(one, depth + 1)
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one, depth + 1)


def _storage(tensor: torch.Tensor) -> int:
    """The address of a tensor's memory; 0 if it has none."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return 0
    address: int = tensor.untyped_storage().data_ptr()
    return address


def _number(value: Any) -> float | None:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
