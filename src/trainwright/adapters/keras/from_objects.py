"""What the source says about the compile call of a Keras model that is passed with its data."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FrameType
from typing import Any

from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.places import place_of, show
from trainwright.seams.source.written import assignment_place, last_name, names_of, syntax_tree


def note_compiled(seen: BuiltObjects, model: Any, frame: FrameType) -> None:
    """Record the call that compiled a model, and the line that built its optimizer, from the source."""
    file = frame.f_code.co_filename
    config = getattr(getattr(model, "_compile_config", None), "config", {})
    given = {k: v for k, v in config.items() if v is not None}
    call = _compile_call(file, names_of(model, frame), frame.f_lineno)
    if call is None:
        seen.compiled[model] = _construction("compile", frame, frame.f_lineno, given)
        return
    written = {k.arg: k.value for k in call.keywords if k.arg}
    told = {n: given.get(n) for n in written}
    for name, value in written.items():
        if isinstance(value, ast.Constant):
            told[name] = value.value
    seen.compiled[model] = _construction("compile", frame, call.lineno, told)
    optimizer, kind = (
        written.get("optimizer") or (call.args[0] if call.args else None),
        type(model.optimizer).__name__,
    )
    line = None
    if isinstance(optimizer, ast.Call) and last_name(optimizer.func) == kind:
        line = optimizer.lineno
    elif isinstance(optimizer, ast.Name) and (made := assignment_place(file, optimizer.id, call.lineno)):
        line = made.line
    if line is not None:
        seen.optimizers[model.optimizer] = _construction(kind, frame, line, {})


def _compile_call(file: str, names: list[str], before: int) -> ast.Call | None:
    """The last call of `compile` on one of these names."""
    tree = syntax_tree(file)
    found = [
        n
        for n in (ast.walk(tree) if tree else ())
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "compile"
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id in names
        and n.lineno <= before
    ]
    return max(found, key=lambda n: n.lineno, default=None)


def _construction(name: str, frame: FrameType, line: int, given: Mapping[str, Any]) -> Construction:
    place = place_of(frame)
    return Construction(
        name=name,
        frame_file=frame.f_code.co_filename,
        line=line,
        place=type(place)(show(frame.f_code.co_filename), line),
        keywords=frozenset(given),
        given=given,
    )
