"""The report for a terminal: the first cause first and alone, then the stages, then the rest."""

from __future__ import annotations

import linecache
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.report import Report, Status
from trainwright.core.trial import Outcome

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_STATUS = {
    Status.PASSED: ("✓", "green"),
    Status.FAILED: ("✗", "red"),
    Status.REPAIRED: ("~", "yellow"),
    Status.BLOCKED: ("·", "dim"),
    Status.SKIPPED: ("-", "dim"),
}


def show(report: Report, console: Console) -> None:
    """Print a report."""
    console.print(render(report))


def render(report: Report) -> RenderableType:
    """The report as something rich can print."""
    parts: list[RenderableType] = [_headline(report), Text()]
    first = report.first_cause
    if first is not None:
        title = Text.assemble(("First cause", "bold"), "  ", (f"{first.code} {first.name}", _COLOURS[first.severity]))
        parts += [Panel(_body(first), title=title, title_align="left", border_style=_COLOURS[first.severity]), Text()]
    elif report.failure is not None:
        parts += [_failure(report), Text()]
    if any(s.status not in (Status.BLOCKED,) for s in report.stages):
        parts += [_stages(report), Text()]
    rest = [f for f in report.findings if f is not first]
    if rest:
        parts.append(Text("Found besides", style="bold"))
        for finding in rest:
            parts += [_title(finding), Padding(_body(finding), (0, 0, 1, 4))]
    if report.message:
        parts.append(Text(report.message))
    if report.internal_errors:
        parts.append(Text("Errors of Trainwright itself (please report them; your script is not at fault):", style="bold"))
        parts += [Text(f"  {e}") for e in report.internal_errors]
    return Group(*parts)


def _headline(report: Report) -> Text:
    findings = report.findings
    counts = [(sum(f.severity == s for f in findings), s) for s in Severity]
    words = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for n, s in counts if n)
    if not words:
        words = "nothing found" if not report.faulty and any(s.status == Status.PASSED for s in report.stages) else (
            "a stage failed" if report.faulty else "not walked"
        )  # fmt: skip
    return Text.assemble(("trainwright ", "bold"), (report.script, "bold cyan"), f": {words}, {report.seconds:.1f} s")


def _title(finding: Finding) -> Text:
    after = f"  (seen after mending {', '.join(dict.fromkeys(finding.after_repair))})" if finding.after_repair else ""
    return Text.assemble(
        ("  "), (f"{finding.code} {finding.name}", _COLOURS[finding.severity]), f" {finding.severity}", (after, "dim")
    )


def _body(finding: Finding) -> RenderableType:
    lines: list[RenderableType] = [Text(finding.message, style="bold")]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    if finding.where is not None:
        table.add_row("where", _line(finding.where))
    if finding.measured:
        table.add_row("measured", ", ".join(f"{k} = {_value(v)}" for k, v in finding.measured.items()))
    if finding.proof is not None:
        table.add_row("proof", _proof(finding.proof))
    if finding.fix is not None:
        done = Text("  (proven: with this done in memory the walk went on)", style="green") if finding.fix.verified else ""
        table.add_row("fix", Text.assemble(finding.fix.does, done))
        if finding.fix.diff:
            table.add_row("", Text(finding.fix.diff))
    elif finding.repair is not None:
        table.add_row("mended", finding.repair.does)
    lines.append(table)
    return Group(*lines)


def _line(place: Place) -> Text:
    source = linecache.getline(str(Path(place.file).absolute()), place.line).strip()
    return Text.assemble((str(place), "cyan"), "  ", source[:100])


def _value(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _proof(proof: Proof | Outcome) -> str:
    if isinstance(proof, Proof):
        return proof.fact
    before, after = (", ".join(f"{x:.4g}" for x in side) for side in (proof.before, proof.after))
    return f"{proof.changed}: loss after {proof.steps} steps {before} becomes {after} ({proof.seeds} seeds, same rows and weights)"


def _failure(report: Report) -> RenderableType:
    failure = report.failure
    assert failure is not None
    lines: list[RenderableType] = [Text(str(failure), style="bold")]
    lines += [Text(f"  {t}") for t in failure.trace]
    if failure.where is not None and not failure.trace:
        lines.append(Text.assemble("  ", _line(failure.where)))
    lines.append(Text("No rule knows this error. It was raised by the script's own pipeline, at the stage marked below."))
    return Panel(Group(*lines), title="The pipeline raised", title_align="left", border_style="red")


def _stages(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    for stage in report.stages:
        mark, colour = _STATUS[stage.status]
        table.add_row(
            Text(f"  {mark} {int(stage.stage)} {stage.stage.label}", style=colour),
            Text(str(stage.status), style=colour),
            Text(f"{stage.seconds:.1f} s" if stage.seconds >= 0.05 else "", style="dim"),
            Text(stage.why, style="dim" if stage.status in (Status.BLOCKED, Status.SKIPPED) else ""),
        )
    return table
