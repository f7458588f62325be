"""Autocast that a loop's own body entered before the walk: disabled during the walk, since the body enters it again.

Within one context, torch caches the weights that it cast. A body that runs inside an outer autocast would use the
weights of the first step forever.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch

from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.seams.source.written import code_node
from trainwright.seams.torch.versions import is_autocast_on, switch_autocast

_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def left_by(loop: Loop) -> Iterator[None]:
    """Disable autocast inside the context if the current one was entered in the loop's body."""
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    if not depth or _is_around(loop):
        yield
        return
    for _ in range(depth):
        torch.autocast_decrement_nesting()
    torch.clear_autocast_cache()
    try:
        with _disabled():
            yield
    finally:
        for _ in range(depth):
            torch.autocast_increment_nesting()


@contextlib.contextmanager
def _disabled() -> Iterator[None]:
    """Disable autocast on every device, without a context that would cache cast weights."""
    was = {device: is_autocast_on(device) for device in _DEVICES}
    for device in _DEVICES:
        switch_autocast(device, False)
    try:
        yield
    finally:
        for device, enabled in was.items():
            switch_autocast(device, enabled)


def _is_around(loop: Loop) -> bool:
    """Whether a `with` around the loop, in its function or a caller, enters autocast."""
    return any(
        _enters_autocast(item.context_expr, frame)
        for frame, line in ((loop.frame, loop.line), *((f, f.f_lineno) for f in callers(loop.frame)))
        for node in ast.walk(code_node(frame.f_code) or ast.Module([], []))
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno < line <= (node.end_lineno or node.lineno)
        for item in node.items
    )


def _enters_autocast(context: ast.expr, frame: FrameType) -> bool:
    scope: Mapping[str, Any] = {**frame.f_globals, **frame.f_locals}
    value = scope.get(context.id) if isinstance(context, ast.Name) else None
    return isinstance(value, torch.autocast) or "autocast" in ast.unparse(context)
