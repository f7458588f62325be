"""The end of a report: package versions, trainings that were not walked, and whether real training may follow."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace

from trainwright.core import Call, Finding, Report, Severity, Stage, StageRun, Status, cells
from trainwright.frameworks.packages import SHOWN

# How the reason of a stage begins that the budget did not reach.
RAN_OUT = "the budget of"
# From here on, the size of a model is worth a word where time ran out.
LARGE = 10_000_000


def stops(report: Report) -> bool:
    """Whether this report should prevent real training."""
    return any(f.severity == Severity.ERROR for f in report.findings) or any(
        s.status == Status.FAILED for s in report.stages
    )


def nothing_checked(ended: str) -> str:
    """The message on a script that trained nothing.

    Args:
        ended: how it ended instead, without a full stop.
    """
    return (
        f"{ended}, so nothing was checked. A check needs a script that calls train() or fit(), or that has "
        "a loop of its own with backward() and step(): name that script, with the arguments with which it trains."
    )


def no_step(budget: float, parameters: int = 0) -> str:
    """The message on a training of which no step was measured; the stages say why."""
    large = f" The model has {parameters / 1e6:,.0f} million parameters." if parameters >= LARGE else ""
    return (
        f"Nothing was checked: at least one step of the training must be measured, and none was.{large} Give the walk more time "
        f"(--budget {4 * budget:g}), or the training less data."
    )


def unreached(stages: Sequence[StageRun], budget: float, parameters: int) -> str:
    """The message on stages that a walk had no time for; empty if it had, or if it has not measured a step."""
    left = [s for s in stages if s.status == Status.SKIPPED and s.why.startswith(RAN_OUT)]
    walked = [s for s in stages if s.status.through and left and s.stage < left[0].stage and s.seconds]
    if not left or not walked or walked[-1].stage < Stage.FORWARD:
        return ""
    longest = max(walked, key=lambda s: s.seconds)
    which = left[0].stage.label + (f" to {left[-1].stage.label}" if len(left) > 1 else "")
    large = f", with {parameters / 1e6:,.0f} million parameters" if parameters >= LARGE else ""
    took = f": the {longest.stage.label} stage alone took {longest.seconds:.0f} s on this machine"
    told = took if (longest.seconds or 0) >= budget / 10 else ""  # otherwise the time went elsewhere
    return f"The budget of {budget:g} s did not reach {which}{told}{large}. --budget {4 * budget:g} allows more."


def versions() -> dict[str, str]:
    """Versions of Python and of the relevant packages that are loaded."""
    return {"python": platform.python_version(), **{p: _version(p) for p in SHOWN if p in sys.modules}}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # tensorflow comes as tensorflow-cpu, too
        return str(getattr(sys.modules[package], "__version__", ""))


def not_walked(file: str, lines: Sequence[int]) -> str:
    """The remark on later training calls, which a check does not reach because it ends at the first."""
    if not lines:
        return ""
    return f"The check ends at the first training call; it did not walk the one at {cells.told(file, list(lines))}."


def without_functions(report: Report) -> Report:
    """The report as it can be handed to another process: repairs lose their functions."""

    def told(finding: Finding) -> Finding:
        return replace(finding, repair=finding.repair and replace(finding.repair, change=_unchanged))

    return replace(
        report,
        findings=tuple(told(f) for f in report.findings),
        passed=tuple(told(f) for f in report.passed),
        trainings=tuple(without_functions(one) for one in report.trainings),
    )


def _unchanged(call: Call) -> Call:
    return call
