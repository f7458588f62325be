"""The parts of a report in words, the same in every renderer."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainwright.core import Failure, Finding, Proof, Report, Severity, Shown, StageRun, Status, Verdict
from trainwright.core.misspelt import misspelt
from trainwright.frameworks.messages import best
from trainwright.registry import knowing

VERIFIED = "verified on an edited copy: a second check of the copy no longer finds the fault"

# A number of a message: digits with separators of thousands, or with a point or an exponent.
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?:\s?%)?(?![\w])", re.IGNORECASE)


def headline(report: Report) -> str:
    """What was found, counted: "2 errors, 1 note"."""
    counts = [(sum(f.severity == s for f in report.findings), s) for s in Severity]
    found = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for n, s in counts if n)
    if found:
        return found
    if report.faulty:
        return "a stage failed"
    if report.is_interrupted:
        return "interrupted; nothing found so far"
    if not report.shows_training:
        return "nothing checked"
    return "nothing new found" if report.known else "nothing found"


def verdict(found: Verdict) -> str:
    """The verdict as the beginning of a sentence, with what stands out beside it."""
    look_at = f"; look at: {'; '.join(found.look_at)}" if found.look_at else ""
    return f"{_VERDICTS[found.shown]}{look_at}"


def judged(report: Report) -> str:
    """The verdict with what it rests on; without one what was found, counted."""
    told = ruled(report)
    return told if told.endswith((".", "?")) else f"{told}."


def ruled(report: Report) -> str:
    """The same without a full stop."""
    return f"{verdict(report.verdict)}: {report.verdict.why}" if report.verdict is not None else headline(report)


def notes(report: Report, status: int) -> Iterator[tuple[str, str]]:
    """What is said of a check as a whole: its verdict, what no rule explains, and errors of ours, each with its level.

    Args:
        status: the exit status; where nothing else is said of a failed check, the verdict is the error.
    """
    yield "error" if status and not report.faulty else "note", f"{judged(report)} {report.message}".strip()
    if report.failure is not None and not says_failure(report):
        yield "error", raised(report.failure)
    yield from (("error", f"internal error in Trainwright: {error}") for error in report.internal_errors)


_VERDICTS = {
    Shown.LEARNS: "It learns", Shown.LEARNS_IN_PART: "It learns in part", Shown.BROKEN: "It is broken",
    Shown.DOES_NOT_LEARN: "It does not learn", Shown.NOT_SHOWN: "Whether it learns was not shown",
    Shown.CANNOT_BE_JUDGED: "Whether it learns cannot be judged",
}  # fmt: skip


PROFILE = "What a probe reads of the label along the pipeline"


def profile(report: Report) -> list[tuple[float, str, str, str]]:
    """For each point of the profile its share, what is read, its name and its place; a place named before is left out."""
    rows, last = [], None
    for point in report.profile:
        where = str(point.where) if point.where is not None and point.where != last else ""
        last = point.where or last
        read = f"{point.share:.0%}" if point.accuracy is None else f"{point.accuracy:.0%} right"
        rows.append((point.share, read, point.name, where))
    return rows


def profile_permuted(report: Report) -> str:
    """What the probe reads of permuted labels, for comparison; empty without classes."""
    known = [p.permuted for p in report.profile if p.permuted is not None]
    return f"of permuted labels, {known[-1]:.0%}" if known else ""


# The first lines of an exception's message say what is wrong; a traceback within it is left out.
MOST_LINES = 6


def raised(failure: Failure) -> str:
    """An error that no finding explains, with the first lines of its message, and what it was raised from."""
    head, (first, *rest) = str(failure), failure.message.strip().split("\n")
    rest = rest if head.endswith(first) else []  # otherwise it has found a later line more telling
    within = next((number for number, line in enumerate(rest) if "Traceback (most recent" in line), len(rest))
    shown = [line.rstrip() for line in rest[:within]]
    lines = [head, *shown[:MOST_LINES], *(["…"] if len(shown) > MOST_LINES else [])]
    return "\n".join([*lines, *(f"raised from {one_line(cause)}" for cause in failure.causes)])


def says_failure(report: Report) -> bool:
    """Whether a finding, or one of the baseline, has said already that this error ends the script."""
    return any(finding.name == "script-stopped" for finding in (*report.findings, *report.known))


def unexplained(report: Report) -> str:
    """The remark on an error that no finding explains: what `trainwright explain` knows of it."""
    failure = report.failure
    if failure is None:
        return ""
    texts = [f"{failure.type}: {failure.message}", *failure.causes]
    names = list(dict.fromkeys(rule.name for text in texts for rule in knowing(text)))
    known = f" It may be {' or '.join(names)}: see `trainwright explain {names[0]}`." if names else ""
    quoted = [match for text in texts if (match := best(*text.split(": ", 1))) is not None]
    first = min(quoted, key=lambda match: match.known.wraps, default=None)
    usual = f". Usually: {first.known.paragraph}" if first is not None else "; no cause was proven."
    if misspelt(failure) is not None:  # the message names what is meant
        first, usual = None, "."
    if says_failure(report):
        told = {finding.fix.does for finding in report.findings if finding.fix is not None}
        if first is not None and first.known.paragraph.rstrip(".") in told:
            return known.strip()
        return f"{usual[2:]}{known}" if first is not None else known.strip()
    return f"Your pipeline raised this error at the stage marked below{usual}{known}"


def redirected(report: Report) -> str:
    """The device of the check, if it is not the one that the script asks for; otherwise empty."""
    found = report.redirected
    if found is None:
        return ""
    precision = f" in {found.precision}" if found.precision else ""
    asks = f"the script asks for {_listed(found.asked)}, and " if found.asked else ""
    return f"checked on the CPU{precision}: {asks}{found.why}"


def status(ended: Status) -> str:
    """A stage's status in the words of a report: JSON's `repaired` is a fault that was fixed in memory."""
    return "fixed" if ended == Status.REPAIRED else str(ended)


def timing(report: Report) -> str:
    """The durations, as a continuation of the headline."""
    if report.start_seconds is None:
        return f", {report.seconds:.1f} s"
    return f", {report.seconds:.1f} s, {report.start_seconds:.1f} s of it to start the script"


def measured(finding: Finding) -> str:
    """The measured numbers that are not already in the message: "outputs 2, largest label 2"."""
    shown = {name: value for name, value in finding.measured.items() if not _said(value, finding.message)}
    return ", ".join(f"{name.replace('_', ' ')} {number(value)}" for name, value in shown.items())


def _said(value: float | int | str, message: str) -> bool:
    if isinstance(value, str) or not math.isfinite(value):
        return re.search(rf"(?<!\w){re.escape(number(value))}(?!\w)", message) is not None
    return any(_rounds_to(float(value), text) for text in _NUMBER.findall(message))


def _rounds_to(value: float, text: str) -> bool:
    """Whether a text shows a value, or a fraction as a percentage, rounded to the text's digits."""
    digits = text.rstrip(" %").replace(",", "")
    exact = digits.lower().split("e")[0].replace(".", "").lstrip("-0")
    shown = value * 100 if text.endswith("%") else value
    return float(digits) == float(f"{shown:.{max(len(exact), 1)}g}")


def number(value: float | int | str) -> str:
    """A float with at most four significant digits; an integer with all of them."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def value_of(value: float | None) -> str:
    """A number in three digits; empty for none."""
    return "" if value is None else number(float(f"{value:.3g}"))


@dataclass(frozen=True)
class Line:
    """A row of a table, or a line in a terminal."""

    cells: tuple[str, ...]
    mark: str = ""
    bars: tuple[float | None, ...] = ()
    """The length of each cell's bar, 0 to 1; None: it has none."""


def proof(finding: Finding) -> str:
    """The proof as a sentence; empty without one."""
    shown = finding.proof
    if shown is None:
        return ""
    if isinstance(shown, Proof):
        return shown.fact
    return (
        f"{shown.changed}: after {shown.steps} steps the {shown.judged_by} is {_side(shown.after)} instead of {_side(shown.before)} "
        f"({shown.seeds} seeds, same rows and weights)"
    )


def _side(losses: Sequence[float]) -> str:
    return ", ".join(number(float(x)) for x in losses)


def tried(finding: Finding) -> str:
    """How far the fix was tested: on an edited copy, in memory by a further run, or not at all (then empty)."""
    if finding.fix is not None and finding.fix.verified:
        return VERIFIED
    return "fixed in memory" if finding.fix is not None and finding.fix.tried else ""


def evidence(finding: Finding) -> dict[str, str]:
    """What a finding says besides its message, by name: what was measured, the proof, warnings of libraries, and the fix."""
    said = {"measured": measured(finding), "proof": proof(finding), "warned": warned(finding)}
    if finding.fix is not None:
        said["fix"] = finding.fix.does
    elif finding.repair is not None:
        said["in memory"] = finding.repair.does
    return {name: text for name, text in said.items() if text}


def remarks(finding: Finding) -> list[str]:
    """The same, and after which repairs it was found: a line each, where there is no layout."""
    shown, said = tried(finding), evidence(finding)
    said |= {"fix": f"{said['fix']} ({shown})"} if shown else {}
    said |= {"found": _after(finding.after_repair)} if finding.after_repair else {}
    return [f"{name.capitalize()}: {text}" for name, text in said.items()]


def whole(finding: Finding) -> str:
    """The message, with a line for each remark."""
    return "\n".join([finding.message, *remarks(finding)])


def head(finding: Finding) -> str:
    """A finding in one line, without its fix."""
    at = f" at {finding.where}" if finding.where else ""
    return f"{finding.code} {finding.name} ({finding.severity}){at}: {finding.message}"


def _after(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    return f"after {_listed(found)} {'were' if len(found) > 1 else 'was'} fixed in memory"


def ordered(report: Report) -> list[Finding]:
    """The findings, the first cause first."""
    return sorted(report.findings, key=lambda finding: finding is not report.first_cause)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Findings that were made with the same faults fixed in memory."""

    heading: str
    """The faults that had to be fixed first, without those of earlier groups; empty for none."""
    findings: tuple[Finding, ...]


def groups(findings: Iterable[Finding]) -> list[Group]:
    """The findings in order, with a new group whenever more faults had been fixed in memory before."""
    parts: list[tuple[str, list[Finding]]] = [("", [])]
    known: set[str] = set()
    for finding in findings:
        new = [name for name in finding.after_repair if name not in known]
        if new:
            known |= set(new)
            also = " too" if any(heading for heading, _ in parts) else ""
            parts.append((f"Found {_after(new)}{also}", []))
        parts[-1][1].append(finding)
    return [Group(heading=heading, findings=tuple(inside)) for heading, inside in parts if inside]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """A row of the table of stages."""

    label: str
    status: Status
    time: str
    why: str


def rows(stages: Iterable[StageRun]) -> list[StageRow]:
    """The stages, one per row; neighboring stages that were not measured for the same reason share a row."""
    parts: list[list[StageRun]] = []
    for run in stages:
        last = parts[-1][-1] if parts else None
        if last is not None and run.status == Status.SKIPPED and (last.status, last.why) == (run.status, run.why):
            parts[-1].append(run)
        else:
            parts.append([run])
    return [_row(part) for part in parts]


def _row(part: Sequence[StageRun]) -> StageRow:
    first, last = part[0], part[-1]
    label = f"{int(first.stage)} {first.stage.label}"
    if first is not last:
        label = f"{int(first.stage)}-{int(last.stage)} {first.stage.label} to {last.stage.label}"
    seconds = sum(run.seconds for run in part)
    time = f"{seconds:.1f} s" if seconds >= 0.05 else ""
    return StageRow(label=label, status=first.status, time=time, why=first.why)


def kept_away(report: Report) -> str:
    """What was suppressed during the check, in one line; empty for nothing."""
    return f"Suppressed during the check: {', '.join(report.kept_away)}." if report.kept_away else ""


WARNINGS = "Warnings that your libraries printed"
# The reports show about a line of a warning's text; the JSON has all of it.
MOST_CHARACTERS = 90


def warnings(report: Report) -> list[tuple[str, str, str]]:
    """Place, text and meaning of the warnings whose meaning is known, except those that sound trainings print, too."""
    known = [one for one in report.warnings if one.means and not one.everyday]
    return [(str(one.where or ""), f"{one.library}: {one_line(one.text)}", one.means) for one in known]


def further_warnings(report: Report) -> str:
    """The number of warnings that are not shown because their meaning is not known; empty for none."""
    count = sum(not w.means for w in report.warnings)
    return f"and {count} more: `--json` lists {'it' if count == 1 else 'them'}" if count else ""


def one_line(text: str) -> str:
    """The beginning of a text, cut between two words."""
    return textwrap.shorten(text, MOST_CHARACTERS, placeholder=" …")


def warned(finding: Finding) -> str:
    """The warnings that libraries printed of a finding's fault."""
    return "; ".join(one_line(text) for text in finding.warned)


def short(report: Report) -> str:
    """The report in a few lines: the findings with the first cause first, and anything else the user should know."""
    lines = [f"trainwright {report.script}: {headline(report)}{timing(report)}"]
    lines += [f"  {ruled(report)}"] if report.verdict else []
    lines += [f"  {redirected(report)}"] if report.redirected else []
    for finding in ordered(report):
        lines += [f"  {head(finding)}", *([f"      fix: {finding.fix.does}"] if finding.fix is not None else [])]
    if report.failure is not None:
        lines += [f"  raised: {report.failure}", f"      {unexplained(report)}"]
    for where, text, means in warnings(report):
        lines.append(f"  warning{f' at {where}' if where else ''}: {text}: {means}")
    lines += [f"  {text}" for text in (report.message, kept_away(report), *report.internal_errors) if text]
    return "\n".join(lines)
