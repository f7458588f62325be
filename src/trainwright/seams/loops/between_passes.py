"""What a script does to the gradients between two passes of its training loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType

from trainwright.seams.loops.found_loops import Loop, loops_at, own_nodes
from trainwright.seams.source.written import code_node


def clears_between_passes(loop: Loop, callers: Sequence[FrameType]) -> bool:
    """Whether code around the training loop clears the gradients before each of its passes, or there is one pass only.

    Args:
        callers: the user's frames that led to the loop's, the nearest first.
    """
    inside = {id(node) for node in ast.walk(loop.node)}
    owners: list[ast.AST | None] = [loop.around[0] if loop.around else code_node(loop.frame.f_code)]
    outer = [around[0] for frame in callers if (around := loops_at(frame, frame.f_lineno))]
    if not loop.around:
        owners += [one.node for one in outer[:1]]
    if not loop.around and not outer:
        return True
    return any(
        _clears(node) for owner in owners if owner is not None for node in own_nodes(owner) if id(node) not in inside
    )


def _clears(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        of_gradient = isinstance(owner, ast.Attribute) and owner.attr == "grad"
        return node.func.attr == "zero_grad" or (node.func.attr == "zero_" and of_gradient)
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in node.targets)
