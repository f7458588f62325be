"""The report as GitHub's Markdown: a comment on a pull request, or the summary of a job."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from trainwright.core import Finding, Report
from trainwright.report import sheet as sheet_words
from trainwright.report import words

# A comment holds 65,536 characters.
MOST_CHARACTERS, LONGEST_FENCE, MOST_ROWS, LONGEST_TEXT = 60_000, 12_000, 25, 600
SINGLE_ROWS = ("samples", "generated")
# What would be markup, and names that would call somebody or point to an issue.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~&$])")
_NAMED = re.compile(r"([@#])(?=\w)")


def render(report: Report, status: int) -> str:
    """The report of a check with this exit status: verdict, first cause with its diff, and further findings in a table.

    Stages and the sheet are folded, and left out where there is no room.
    """
    head = f"{report.script}: {words.headline(report)}{words.timing(report)}, exit status {status}"
    verdict, *others = (_text(text) for _, text in words.notes(report, status))
    parts = [f"### trainwright {_text(head)}", f"**{verdict}**", *others]
    if report.first_cause is not None:
        parts += _first_cause(report.first_cause)
    if rest := [finding for finding in words.ordered(report) if finding is not report.first_cause]:
        parts.append(_table(("", "finding", "where", "what"), map(_row, rest[:MOST_ROWS])))
        parts.append(f"and {len(rest) - MOST_ROWS} more" if len(rest) > MOST_ROWS else "")
    for title, text in _folded(report):
        part = f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
        parts += [part] if sum(map(len, parts)) + len(part) < MOST_CHARACTERS else []
    return "\n\n".join(filter(None, parts)) + "\n"


def _first_cause(finding: Finding) -> Iterator[str]:
    where = f", {_text(str(finding.where))}" if finding.where is not None else ""
    yield f"**First cause: {_text(f'{finding.code} {finding.name}')}** ({finding.severity}{where})"
    yield _text(finding.message)
    yield "\n".join(f"- {_text(remark)}" for remark in words.remarks(finding))
    yield _fence(finding.fix.diff, "diff") if finding.fix is not None and finding.fix.diff else ""


def _row(finding: Finding) -> Sequence[str]:
    fix = f". Fix: {finding.fix.does}" if finding.fix is not None else ""
    return str(finding.severity), f"{finding.code} {finding.name}", str(finding.where or ""), f"{finding.message}{fix}"


def _folded(report: Report) -> Iterator[tuple[str, str]]:
    """What is shown on demand, by its title; no single rows, as a comment has more readers than the data."""
    rows = [(row.label, words.status(row.status), row.time, row.why) for row in words.rows(report.stages)]
    if rows:
        yield "Stages", _table(("stage", "status", "time", "why"), rows)
    if report.sheet is not None:
        shown = {name: of for name, of in sheet_words.brief(report.sheet).items() if name not in SINGLE_ROWS}
        found = [(name, line) for name, of in shown.items() for line in of]
        lines = [f"{t:<10} {'  '.join(line.cells)}{f'  ← {line.mark}' if line.mark else ''}" for t, line in found]
        yield sheet_words.TITLE, _fence("\n".join([sheet_words.outline(report.sheet), *lines]))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _fence(text: str, language: str = "") -> str:
    """A block of code behind a fence that is longer than any in it."""
    fence = "`" * max(3, *(len(found) + 1 for found in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text[:LONGEST_FENCE].rstrip()}\n{fence}"


def _text(text: str) -> str:
    """A text in one line, in which nothing is markup."""
    return _NAMED.sub(r"\1<!-- -->", _MARKUP.sub(r"\\\1", textwrap.shorten(text, LONGEST_TEXT, placeholder=" …")))
