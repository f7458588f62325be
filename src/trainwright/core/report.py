"""The result of a check as plain data. Renderers show it and decide nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from trainwright.core.finding import Failure, Finding, LibraryWarning, Place, Proof, Severity
from trainwright.core.plain import place, plain, read
from trainwright.core.repair import Repair, Seam
from trainwright.core.sheet import Sheet, sheet_from_dict, sheet_to_dict
from trainwright.core.stage import Stage
from trainwright.core.trial import LOSS, Outcome
from trainwright.core.verdict import Verdict

SCHEMA = 1
# The exit status that shells report for a program ended by Ctrl-C.
EXIT_INTERRUPTED = 130

# Why a stage is passed whose warnings' names follow.
WARNED = "with a warning: "


class Status(StrEnum):
    """How a stage ended."""

    PASSED = "passed"
    FAILED = "failed"
    REPAIRED = "repaired"
    SKIPPED = "skipped"
    UNSHOWN = "not shown"
    """Checked to its end, without showing that anything is learned."""
    NOTED = "noted"
    """Checked to its end; what was measured is far from what is expected, and may be meant."""

    @property
    def through(self) -> bool:
        """Whether the stage was checked to its end, with or without a repair."""
        return self in (Status.PASSED, Status.REPAIRED, Status.UNSHOWN, Status.NOTED)


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """One stage of one check; `why` says what was found, what was measured, or why it was skipped."""

    stage: Stage
    status: Status
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Redirected:
    """The check ran on the CPU although the script asks for another device."""

    asked: tuple[str, ...]
    """Devices first, then precisions, then other features of such a device."""
    precision: str | None
    """fp32 if the script asks for half precision, otherwise None."""
    why: str
    """There is no such device, or the user chose not to use it."""


@dataclass(frozen=True, kw_only=True)
class ProfilePoint:
    """How much of the label a probe reads at one point of the pipeline."""

    name: str
    """The rows of the data set, the model's input, a module with its class, or an operation."""
    share: float
    """0: no more than of permuted labels; 1: all of it. Accuracy above that on permuted labels, or correlation."""
    accuracy: float | None = None
    permuted: float | None = None
    """The probe's accuracy on permuted labels; None for targets that are no classes."""
    where: Place | None = None


@dataclass(frozen=True, kw_only=True)
class Command:
    """The command line of a check, and its budget in seconds."""

    options: tuple[str, ...]
    words: tuple[str, ...]
    """SCRIPT, or the command that starts it, and what follows."""
    real: tuple[str, ...]
    """Runs the script for real; empty: no command does."""
    budget: float

    def again(self, option: str = "", value: str = "") -> str:
        """The command of this check, with an option's value in the place of the one before."""
        words, given = [*self.options], [option, value] if option else []
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
        return shlex.join(["trainwright", "check", *given, *words, *self.words])


shown_as: dict[str, Callable[[Report], str]] = {}
"""Functions that show a report, by format ("html", "text"); `trainwright.report` registers its renderers here."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of one check."""

    script: str
    framework: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Duration of the check."""
    start_seconds: float | None = None
    """Time from the script's start to the checked training, including imports and data; None if no script was run."""
    findings: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    """Those of a baseline, which are left out and do not count."""
    stages: tuple[StageRun, ...] = ()
    verdict: Verdict | None = None
    """Whether the training learns; None if no training was reached."""
    profile: tuple[ProfilePoint, ...] = ()
    """What a probe reads of the label along the pipeline, if the training was not seen to learn."""
    sheet: Sheet | None = None
    """What was seen in the rehearsal; None: there was none."""
    message: str = ""
    """Anything else the user should know: no training was started, the check was interrupted, and so on."""
    failure: Failure | None = None
    """An exception of the user's pipeline that no rule explains."""
    internal_errors: tuple[str, ...] = ()
    redirected: Redirected | None = None
    kept_away: tuple[str, ...] = ()
    """What the script would have logged, written, tracked or sent during the check, each in a few words."""
    warnings: tuple[LibraryWarning, ...] = ()
    """What libraries warned of, without what is known to be harmless."""
    begins: Place | None = None
    """The line at which the first training begins."""
    typed: Command | None = None
    """What was typed, for the last line of a terminal's report; None: it is of objects or of a cell, or was read from a file."""
    date: str = ""
    """When the check began, to the minute, with the offset of the local time."""
    command: str = ""
    """The command line that runs the check again, without secrets; empty: it was not started by one."""

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended the check."""
        return self.message.startswith("Interrupted")

    @property
    def first_cause(self) -> Finding | None:
        """The earliest stage's error, otherwise warning; findings made without a repair in force take precedence.

        A fault that only shows once another one is repaired is the later of the two.
        """
        for severity in (Severity.ERROR, Severity.WARNING):
            of = [f for f in self.findings if f.severity == severity]
            for group in ([f for f in of if not f.after_repair], of):
                if group:
                    return min(group, key=lambda f: f.stage)
        return None

    @property
    def faulty(self) -> bool:
        """Whether anything above a note was found, or a stage failed, of whose error nothing was known."""
        is_failed = any(s.status == Status.FAILED for s in self.stages)
        return self.first_cause is not None or (is_failed and not self.knows_error)

    @property
    def knows_error(self) -> bool:
        """Whether the baseline has an error of this check, which is why it fails, or ends before it trains."""
        return any(f.severity == Severity.ERROR for f in self.known)

    @property
    def shows_training(self) -> bool:
        """Whether a training step was seen; without one, nothing was shown of a training."""
        is_seen = self.sheet is not None and self.sheet.updates > 0
        return is_seen or any(s.stage >= Stage.FORWARD and s.status.through for s in self.stages)

    def __repr__(self) -> str:
        """A summary in a few lines, for an interpreter."""
        return shown_as["text"](self) if "text" in shown_as else f"<Report of {self.script}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same for IPython."""
        printer.text(repr(self))

    def _repr_html_(self) -> str | None:
        """The report as HTML, for a notebook."""
        return shown_as["html"](self) if "html" in shown_as else None


def exit_status(report: Report) -> int:
    """The exit status of a check."""
    if report.internal_errors:
        return 2
    if report.faulty:
        return 1
    if report.is_interrupted:
        return EXIT_INTERRUPTED
    return 0 if report.shows_training or report.knows_error else 2


def to_dict(report: Report) -> dict[str, Any]:
    """The report in schema 1, as plain data for JSON; what reports of single trainings had stays empty."""
    first = report.first_cause
    return {
        "schema": SCHEMA,
        "script": report.script,
        "framework": report.framework,
        "versions": dict(report.versions),
        "seconds": round(report.seconds, 2),
        "start_seconds": None if report.start_seconds is None else round(report.start_seconds, 2),
        "verdict": plain(report.verdict),
        "first_cause": _finding(first) if first else None,
        "findings": [_finding(f) for f in report.findings],
        "stages": [
            {"stage": s.stage.label, "status": str(s.status), "why": s.why, "seconds": round(s.seconds, 2)}
            for s in report.stages
        ],
        "profile": [{**plain(p), "share": round(p.share, 4)} for p in report.profile],
        "sheet": sheet_to_dict(report.sheet),
        "samples": [],
        "redirected": {**plain(report.redirected), "to": "cpu"} if report.redirected else None,
        "message": report.message,
        "failure": plain(report.failure),
        "internal_errors": list(report.internal_errors),
        "kept_away": list(report.kept_away),
        "warnings": plain(report.warnings),
        "training": None,
        "begins": place(report.begins),
        "trainings": [],
        "date": report.date,
        "command": report.command,
    }


def from_dict(data: Mapping[str, Any]) -> Report:
    """The report that `to_dict` wrote; repairs lose their functions.

    Raises:
        ValueError: if the data is not in schema 1.
    """
    if data.get("schema") != SCHEMA:
        raise ValueError(f"a report must have schema {SCHEMA}; got {data.get('schema')!r}.")
    stages = tuple(replace(read(StageRun, one), stage=Stage[one["stage"].upper()]) for one in data["stages"])
    findings = tuple(map(_read_finding, data["findings"]))
    sheet = sheet_from_dict(data.get("sheet"))
    read_here: dict[str, Any] = {"findings": findings, "stages": stages, "sheet": sheet}
    rest: Report = read(Report, {key: value for key, value in data.items() if key not in read_here})
    return replace(rest, **read_here)


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "code": f.code,
        "name": f.name,
        "stage": f.stage.label,
        "severity": str(f.severity),
        "message": f.message,
        "measured": {k: plain(v) for k, v in f.measured.items()},
        "where": place(f.where),
        "proof": _proof(f.proof),
        "repair": f.repair.does if f.repair else None,
        "fix": {name: held for name, held in plain(f.fix).items() if name != "edits"} if f.fix else None,
        "after_repair": list(f.after_repair),
        "warned": list(f.warned),
    }


def _proof(proof: Proof | Outcome | None) -> dict[str, Any] | None:
    if isinstance(proof, Outcome):
        judged = {} if proof.judged_by == LOSS else {"judged_by": proof.judged_by}
        told = {key: plain(getattr(proof, key)) for key in ("changed", "before", "after", "steps", "seeds")}
        return {**judged, "kind": "experiment", **told}
    return {"kind": "fact", "fact": proof.fact} if proof else None


def _read_finding(data: Mapping[str, Any]) -> Finding:
    proof, repair = data["proof"], data["repair"]
    rest: Finding = read(Finding, {key: value for key, value in data.items() if key not in ("proof", "repair")})
    return replace(
        rest,
        proof=read(Proof if proof and proof["kind"] == "fact" else Outcome, proof),
        repair=Repair(repair, Seam.BATCH, lambda call: call) if repair else None,
    )
