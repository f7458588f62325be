"""Where a program makes its loaders, and faults that take two changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from exam.roles import Place, is_evaluation
from exam.source import Planted, Source, keyword

LOADERS = ("DataLoader", "StatefulDataLoader")


def lines(place: Place, text: str) -> Iterator[Planted]:
    if text and place.form != "value" and place.kind in ("tensor", "array"):
        yield place.lines(text)


def loaders(source: Source, evaluation: bool = False) -> Iterator[cst.Call]:
    """Calls that make a loader of training rows, or of evaluation rows."""
    for call in source.calls(*LOADERS):
        line = source.statement(call)
        head = source.code(line).partition("=")[0] if isinstance(line, cst.SimpleStatementLine) else ""
        function = source.scope(call).rpartition(".")[2]
        first = source.code(call.args[0].value) if call.args else ""
        held = any(
            is_evaluation(text)
            for text in (function, first, head if source.code(line).count("DataLoader(") == 1 else "")
        )
        mixed = keyword(call, "shuffle") is not None and source.code(keyword(call, "shuffle").value) == "True"  # type: ignore[union-attr]
        if (held and not mixed) == evaluation:
            yield call


def and_then(planted: Planted, source: Source, then: Callable[[Source], Iterator[Planted]]) -> Iterator[Planted]:
    """A second change after the first one, whose line counts."""
    for second in then(Source(planted.source, source.names)):
        yield Planted(second.source, planted.line, f"{planted.change}; {second.change}", planted.lines)
