"""The report for a terminal: the first cause first and alone, then the stages, then the rest; in short where nothing was found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trainwright.core import Finding, Place, Report, Severity, Shown, Stage, Status
from trainwright.core.sheet import Sheet
from trainwright.report import sheet as sheet_words
from trainwright.report import words
from trainwright.report.links import Linked, with_links
from trainwright.report.next_step import next_step
from trainwright.report.source import excerpt

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_STATUS = {
    Status.PASSED: ("✓", "green"), Status.FAILED: ("✗", "red"), Status.REPAIRED: ("~", "yellow"),
    Status.SKIPPED: ("-", "dim"), Status.UNSHOWN: ("?", "yellow"), Status.NOTED: ("!", "yellow"),
}  # fmt: skip
_VERDICT = {
    Shown.LEARNS: ("✓", "green"), Shown.LEARNS_IN_PART: ("!", "yellow"), Shown.BROKEN: ("✗", "red"),
    Shown.DOES_NOT_LEARN: ("✗", "red"), Shown.NOT_SHOWN: ("?", "yellow"), Shown.CANNOT_BE_JUDGED: ("?", "yellow"),
}  # fmt: skip


# The lines of each part of the sheet in a short report; of the others, those that are marked.
SHORT = {"score": 3, "reported": 2, "curves": 1, "weights": 1, "rows": 2, "trainings": 3}
MOST_MARKED = 2
# The stages that share a line of a short report.
GROUPS = (
    (Stage.SETUP,), (Stage.DATASET, Stage.BATCH), (Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS, Stage.OPTIMIZER),
    (Stage.EVALUATION,), (Stage.OVERFIT, Stage.BASELINE), (Stage.REHEARSAL,),
)  # fmt: skip
# Stages that the check tries by itself, in place of what the run shows.
TRIES = (Stage.EVALUATION, Stage.OVERFIT, Stage.BASELINE)
OWN_ERRORS = "Internal errors in Trainwright (please report them; your script is not at fault)"
MORE = "All that was measured: --verbose, or --html FILE."


def show(report: Report, console: Console, *, verbose: bool = True) -> None:
    """Print a report; not verbose: in short, if nothing was found."""
    console.print(Linked(render(report, verbose=verbose)))
    if told := next_step(report):  # in one line, to be copied
        console.print(Linked(with_links(Text.assemble(("\nNext: ", "bold"), told))), soft_wrap=True)


def render(report: Report, *, verbose: bool = True) -> RenderableType:
    """The report as something rich can print; not verbose: in short, if nothing was found."""
    is_short = not verbose and not report.faulty and report.failure is None
    head = Text.assemble(("trainwright ", "bold"), (report.script, "bold cyan"))
    head.append(f": {words.headline(report)}")
    parts: list[RenderableType] = [head.append(words.timing(report))]
    if report.verdict is not None:
        mark, colour = ("!", "yellow") if report.verdict.look_at else _VERDICT[report.verdict.shown]
        parts.append(Text.assemble((f"{mark} {words.verdict(report.verdict)}", colour), f": {report.verdict.why}"))
    if report.redirected is not None:
        parts.append(Text(words.redirected(report), style="dim"))
    parts.append(Text())
    first = report.first_cause
    if first is not None:
        parts += [_first_cause(first), Text()]
    if report.failure is not None and (report.failure.trace or not words.says_failure(report)):
        parts += [_failure(report), Text()]
    is_measured = any(run.status != Status.SKIPPED for run in report.stages)
    if is_measured or (report.stages and not is_short):
        parts += [_short_stages(report) if is_short else _stages(report), Text()]
    parts += _short_sheet(report) if is_short else _seen(report)
    rest = words.ordered(report)[first is not None :]
    if rest:
        parts.append(Text("Other findings", style="bold"))
    for group in words.groups(rest):
        parts += [Text(f"{group.heading}:", style="dim")] if group.heading else []
        parts += [_note(f) if is_short else _further(f) for f in group.findings]
    if shown := words.warnings(report):
        parts += [Text(words.WARNINGS, style="bold"), *(_warning(*line) for line in shown)]
        parts += [Text(f"  {more}", style="dim")] if (more := words.further_warnings(report)) else []
        parts.append(Text())
    if report.message:
        parts.append(Text(report.message))
    if kept := words.kept_away(report):
        parts.append(Text(kept, style="dim"))
    parts += [Text(MORE, style="dim")] if is_short and is_measured else []
    if report.internal_errors:
        parts += [Text(), Text(OWN_ERRORS, "bold"), *(Padding(Text(e), (0, 0, 0, 2)) for e in report.internal_errors)]
    return Group(*parts)


def _seen(report: Report) -> list[RenderableType]:
    """What was seen, whether or not anything was found."""
    seen = [render_sheet(report.sheet)] if report.sheet is not None else []
    seen += [render_profile(report)] if report.profile else []
    return [part for one in seen for part in (one, Text())]


def _short_stages(report: Report) -> Table | Text:
    """A line for each group of stages; where the run shows what comes out, one for all of them."""
    is_run = report.sheet is not None and report.sheet.updates > 0
    spoken = {finding.stage for finding in report.findings}
    rows = []
    for group in GROUPS:
        runs = [run for run in report.stages if run.stage in group]
        if is_run and not spoken & set(group):
            runs = [run for run in runs if run.stage not in TRIES]
        if runs:
            # The stage that shows the least stands for the group.
            mark, colour = _STATUS[max((run.status for run in runs), key=list(_STATUS).index)]
            names = " to ".join(dict.fromkeys((runs[0].stage.label, runs[-1].stage.label)))
            why = "; ".join(dict.fromkeys(run.why for run in runs if run.why))
            rows.append((Text(f"{mark} {names}", style=colour), Text(why)))
    if not is_run:
        return _grid(rows)
    *_, (_, end) = rows
    return Text("  ").join([*(name for name, _ in rows[:-1]), Text.assemble(rows[-1][0], ": ", end)])


def _grid(rows: Sequence[tuple[Text, Text]]) -> Table:
    """Two columns, of which the second one wraps: a number that is cut looks like another one."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(with_links, row))
    return table


def _short_sheet(report: Report) -> list[RenderableType]:
    """The scores, the script's own numbers, the curve, and what stands out."""
    if report.sheet is None:
        return []
    rows: list[tuple[Text, Text]] = []
    for title, every in sheet_words.brief(report.sheet).items():
        marked = [line for line in every if line.mark and title != "samples"][:MOST_MARKED]
        rows += _aligned(every[: SHORT[title]] if title in SHORT else marked, title, mark_first=True)
    return [_grid(rows), Text()] if rows else []


def _aligned(lines: Sequence[words.Line], title: str = "", *, mark_first: bool = False) -> list[tuple[Text, Text]]:
    """The lines with their cells below each other, and an arrow at what stands out."""
    count = max((len(line.cells) for line in lines), default=0)
    of = [line.cells for line in lines if len(line.cells) == count]  # a remark of one cell widens no column
    widths = [max(len(cells[i]) for cells in of) for i in range(count)]
    rows = []
    for number, line in enumerate(lines):
        told = "  ".join(c.ljust(width) for c, width in zip(line.cells, widths, strict=False) if width).rstrip()
        parts = [(f"← {line.mark}", "yellow"), ("  ", "")] if line.mark else []
        shown = Text.assemble(*parts, told) if mark_first else Text.assemble(told, *reversed(parts))
        rows.append((Text("" if number else title, style="dim"), shown))
    return rows


def _note(finding: Finding) -> Text:
    """A note in one line."""
    where = f" ({finding.where})" if finding.where is not None else ""
    told = f"  {finding.code} {finding.name}: {finding.message}{where}"
    return with_links(Text(told, no_wrap=True, overflow="ellipsis"))


def _first_cause(finding: Finding) -> Panel:
    colour = _COLOURS[finding.severity]
    title = Text.assemble(
        ("First cause: ", "bold"), (f"{finding.code} {finding.name}", colour), f" ({finding.severity})"
    )
    lines: list[RenderableType] = [Text(finding.message, style="bold"), Text()]
    if finding.where is not None:
        lines += [with_links(Text(str(finding.where), style="cyan")), *_source(finding.where), Text()]
    return Panel(Group(*lines, *_evidence(finding)), title=title, title_align="left", border_style=colour)


_BAR = 16


def render_profile(report: Report) -> RenderableType:
    """A bar for each point of the profile."""
    permuted = words.profile_permuted(report)
    title = Text.assemble((words.PROFILE, "bold"), (f"  ({permuted})" if permuted else "", "dim"))
    table = Table.grid(padding=(0, 1))
    for width in (_BAR, 9, 20, 8):
        table.add_column(no_wrap=True, overflow="ellipsis", min_width=width)
    for share, read, name, where in words.profile(report):
        full = round(_BAR * share)
        bar = Text.assemble(("█" * full, "green"), ("░" * (_BAR - full), "dim"))
        table.add_row(bar, Text(read, justify="right"), Text(name), with_links(Text(where, style="cyan")))
    return Group(title, table)


def render_sheet(sheet: Sheet) -> RenderableType:
    """The sheet in about one screen; what stands out has an arrow."""
    head = Text.assemble((sheet_words.TITLE, "bold"), (f"  ({sheet_words.outline(sheet)})", "dim"))
    rows = [row for title, lines in sheet_words.brief(sheet).items() for row in _aligned(lines, title)]
    return Group(head, *(Text(told) for told in (sheet_words.end(sheet),) if told), _grid(rows))


def _further(finding: Finding) -> RenderableType:
    title = Text.assemble((f"{finding.code} {finding.name}", _COLOURS[finding.severity]), f" ({finding.severity})")
    lines: list[RenderableType] = [title, Text(finding.message)]
    if finding.where is not None:
        named = next((line.text for line in excerpt(finding.where, around=0)), "")
        told = Text.assemble((str(finding.where), "cyan"), f"  {named}", no_wrap=True, overflow="ellipsis")
        lines.append(with_links(told))
    return Padding(Group(*lines, *_evidence(finding)), (0, 0, 1, 2))


def _warning(where: str, text: str, means: str) -> RenderableType:
    told = Text.assemble((f"{where}  " if where else "", "cyan"), (f"{text}: ", "dim"), means)
    return Padding(with_links(told), (0, 0, 0, 2))


def _source(place: Place) -> list[RenderableType]:
    lines = excerpt(place)
    width = len(str(lines[-1].number)) if lines else 0
    shown: list[RenderableType] = []
    for line in lines:
        mark, style = ("> ", "") if line.named else ("  ", "dim")
        parts = (mark, "bold"), (f"{line.number:>{width}} ", "dim"), (line.text, style)
        shown.append(Text.assemble(*parts, no_wrap=True, overflow="ellipsis"))
    return shown


def _evidence(finding: Finding) -> list[RenderableType]:
    """A table with the rows measured, proof and fix, and the fix as a diff below it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in words.evidence(finding).items():
        table.add_row(name, Text(text))
    if tried := words.tried(finding):
        table.add_row("", Text(f"✓ {tried}", style="green"))
    return [table, Text(), _diff(finding.fix.diff)] if finding.fix and finding.fix.diff else [table]


def _diff(diff: str) -> Table:
    """The changed lines of a unified diff and their context; file name and line number are shown above."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in diff.rstrip("\n").split("\n"):
        if line.strip() and not line.startswith(("---", "+++", "@@", "\\")):
            table.add_row(line[:1], Text(line[1:]), style={"-": "red", "+": "green"}.get(line[:1], "dim"))
    return table


def _failure(report: Report) -> Panel:
    failure = report.failure
    assert failure is not None
    is_said = words.says_failure(report)
    lines: list[RenderableType] = [] if is_said else [Text(words.raised(failure), style="bold"), Text()]
    lines += [with_links(Text(t)) for t in failure.trace]
    if told := words.unexplained(report):
        lines += [Text(), Text(told)] if failure.trace else [Text(told)]
    title = "The way to it" if is_said else "The pipeline raised an error"
    return Panel(Group(*lines), title=title, title_align="left", border_style="red")


def _stages(report: Report) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name in ("stage", "status", "seconds"):
        table.add_column(name, no_wrap=True, justify="right" if name == "seconds" else "left")
    table.add_column("why", overflow="fold")
    for row in words.rows(report.stages):
        mark, colour = _STATUS[row.status]
        table.add_row(
            Text(f"{mark} {row.label}", style=colour),
            Text(words.status(row.status), style=colour),
            Text(row.time, style="dim"),
            Text(row.why, style="dim" if row.status == Status.SKIPPED else ""),
        )
    return table
