"""The parts of a report in words, the same in every renderer."""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.report import Report, Status
from trainwright.core.trial import Outcome

PROVEN = "proven: with this done in memory the walk went on"
UNKNOWN = "No rule knows this error. The script's own pipeline raised it, at the stage marked below."


def headline(report: Report) -> str:
    """What was found, counted: "2 errors, 1 note"."""
    counts = [(sum(f.severity == s for f in report.findings), s) for s in Severity]
    found = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for n, s in counts if n)
    if found:
        return found
    if report.faulty:
        return "a stage failed"
    if report.message.startswith("Interrupted"):
        return "interrupted, nothing found until then"
    return "nothing found" if any(s.status == Status.PASSED for s in report.stages) else "not walked"


def measured(finding: Finding) -> str:
    """The measured numbers: "outputs 2, largest label 2"."""
    return ", ".join(f"{name.replace('_', ' ')} {number(value)}" for name, value in finding.measured.items())


def number(value: float | int | str) -> str:
    """A number in at most four digits behind which nothing is sure; counts whole."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def proof(shown: Proof | Outcome) -> str:
    """What settles the matter, in a sentence."""
    if isinstance(shown, Proof):
        return shown.fact
    return (
        f"{shown.changed}: after {shown.steps} steps the {shown.judged_by} is {_side(shown.after)} instead of {_side(shown.before)} "
        f"({shown.seeds} seeds, same rows and weights)"
    )


def _side(losses: Sequence[float]) -> str:
    return ", ".join(number(float(x)) for x in losses)


def after(finding: Finding) -> str:
    """After which repairs it was seen: "seen after mending ragged-batch"; empty for none."""
    names = ", ".join(dict.fromkeys(finding.after_repair))
    return f"seen after mending {names}" if names else ""
