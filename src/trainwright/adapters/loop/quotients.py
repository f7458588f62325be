"""The quotients of a loop's evaluation whose dividend and divisor do not count the same."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from trainwright.core.finding import Place
from trainwright.seams.loops.lifted_pass import LiftedPass
from trainwright.seams.loops.quotients import WrittenQuotient, written_quotients
from trainwright.seams.source.places import show
from trainwright.seams.torch.marks import Meeting, ModelCall
from trainwright.stages.evaluation import Comparison, Quotient


def measure_quotients(
    lifted: LiftedPass, comparisons: Sequence[tuple[ModelCall, Comparison]], meetings: Sequence[Meeting]
) -> tuple[Quotient, ...]:
    """The quotients with what the first pass compared per batch; only those of several evaluated batches."""
    found = []
    for one in written_quotients(lifted.statements, lifted.namespace, lifted.loop.file):
        lines = range(one.statement.lineno, (one.statement.end_lineno or one.statement.lineno) + 1)
        batches = sum(1 for _ in _evaluated(one, lines, meetings))
        if batches < 2 or not hasattr(one.loader, "__len__") or len(one.loader) < 2:
            continue
        file = show(one.file)
        compared = [
            (round(c.equal_share * math.prod(c.result)), math.prod(c.result))
            for call, c in comparisons
            if call.turn == 0 and not call.trained and c.equal_share is not None and c.operation == "=="
            if c.where is not None and c.where.file == file and c.where.line in lines
        ]
        target = one.statement.target if isinstance(one.statement, ast.AugAssign) else one.statement.targets[0]
        found.append(
            Quotient(
                name=ast.unparse(target),
                written=ast.unparse(one.statement),
                quotient=ast.unparse(one.quotient),
                by_rows=one.by_rows,
                added=one.added,
                mean=one.mean,
                compared=tuple(compared) if len(compared) == batches else (),
                batches=batches,
                where=Place(file, one.statement.lineno),
                divided_at=Place(file, one.quotient.lineno),
            )
        )
    return tuple(found)


def _evaluated(one: WrittenQuotient, lines: range, meetings: Sequence[Meeting]) -> Iterator[ModelCall]:
    """The calls of the first pass, none of them trained, whose outputs were compared or measured on these lines."""
    seen: set[int] = set()
    for meeting in meetings:
        if any(file == one.file and line in lines for file, line in meeting.lines):
            for call in meeting.calls:
                if call.turn == 0 and not call.trained and call.number not in seen:
                    seen.add(call.number)
                    yield call
