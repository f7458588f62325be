"""Faults that the close look has found, mended in further runs: each run shows what its repair is worth, and what lies behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from trainwright.core import Failure, Finding, Outcome, Proof, Seam, Shown, Verdict
from trainwright.judging.looks import judge_looks
from trainwright.look.asking import MOST_REPAIRS, Wanted, first_fault
from trainwright.look.results import LookResult
from trainwright.rehearsal.record import Record
from trainwright.review.review import Review, review
from trainwright.review.verdict import verdict_of

_NO_DOOR = (Seam.METRICS,)  # of a run
_WORSE = (Shown.BROKEN, Shown.DOES_NOT_LEARN)
_BETTER = (Shown.LEARNS_IN_PART, Shown.LEARNS)

RunAgain = Callable[[Sequence[Wanted]], Record | None]
"""Runs the script with repairs in force; None: there is no time for it."""


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """A run, and what is asked of it, once."""

    record: Record
    names: tuple[str, ...] = ()
    """The rules of the repairs that were in force, the last of which it has proven."""

    @cached_property
    def asked(self) -> Review:
        """What the questions find in it."""
        return review(self.record)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it learns."""
        return verdict_of(self.record, self.asked.findings)

    @property
    def ends(self) -> list[Failure]:
        """What ended it and the runs before, whose lines a copy went past."""
        return [one.failure for one in (*self.record.earlier, self.record.ended) if one.failure is not None]


class Repaired(NamedTuple):
    """What the rules find in looks, and behind the faults that further runs have mended."""

    findings: list[Finding]
    own_errors: list[str]
    """What failed in rules of ours."""
    runs: list[JudgedRun]
    """Those with repairs in force."""


def judge_repaired(looks: Sequence[LookResult], judged: JudgedRun, run: RunAgain | None) -> Repaired:
    """Ask the rules about a run's looks, and about those of further runs with the first fault mended, one after the other.

    Args:
        looks: at trainings of the run.
        run: None: nothing is repaired.
    """
    passed, failed = judge_looks(judged.record.passed)
    found, further = judge_looks(looks, passed)
    runs, wanted = list[JudgedRun](), list[Wanted]()
    now, new = judged, found
    while run is not None and len(wanted) < MOST_REPAIRS:
        fault = first_fault(f for f in new if not _holds(passed, f))
        if fault is None or fault.repair is None or not _has_door(fault):
            break
        alone = ((one, judge_looks([one])[0]) for one in looks)
        looked, beside = next((pair for pair in alone if _holds(pair[1], fault)), (None, []))
        if looked is None:
            break
        wanted.append(Wanted(rule=fault.name, does=fault.repair.does, looked=looked))
        again = run(wanted)
        of_training = [one for one in again.looks if max(1, one.training) == max(1, looked.training)] if again else []
        if again is None or not of_training:
            break
        names = tuple(dict.fromkeys(one.rule for one in wanted))
        after, of_passed = JudgedRun(again, names), judge_looks(again.passed)[0]
        left = judge_looks(of_training, of_passed)[0]
        looks = [*again.passed, *of_training]
        is_in_force = any(fault.repair.does in one.repaired for one in looks)
        shown = _compare(now, after, left) if is_in_force and not _holds(left, fault) else ""
        if not shown:
            break
        # What was found beside it, and is no more, came of it; a run that was cut earlier may not have come to it.
        beside = beside if again.updates >= now.record.updates else []
        found = [f for f in found if f is fault or not _holds(beside, f) or _holds(left, f)]
        found = [_with_proof(f, shown) if f is fault else f for f in found]
        new = [replace(f, after_repair=names) for f in left if not _holds(found, f)]
        found, passed, now = [*found, *new], [*passed, *of_passed], after
        runs.append(after)
    return Repaired(found, failed + further, runs)


def is_mendable(record: Record) -> bool:
    """Whether a rule explains what ended a run, with a repair that a further run can have in force."""
    ends = [look for look in record.looks if look.is_end]
    first = first_fault(judge_looks(ends)[0])
    return first is not None and _has_door(first)


def _has_door(fault: Finding) -> bool:
    """Whether a repair can be in force in a further run."""
    return fault.repair is not None and fault.repair.seam not in _NO_DOOR


def _holds(found: Sequence[Finding], fault: Finding) -> bool:
    return any((f.name, f.where) == (fault.name, fault.where) for f in found)


def _with_proof(fault: Finding, shown: str) -> Finding:
    """The finding, with what a run with its repair has shown; a trial's outcome says more."""
    does = fault.repair.does if fault.repair is not None else ""
    fault = replace(fault, fix=replace(fault.fix, tried=True) if fault.fix is not None else None)
    if isinstance(fault.proof, Outcome):
        return fault
    own = f"{fault.proof.fact}; " if fault.proof is not None else ""
    return replace(fault, proof=Proof(f"{own}with this change in memory ({does}), {shown}"))


def _compare(before: JudgedRun, after: JudgedRun, left: Sequence[Finding]) -> str:
    """What a run with a repair shows, beside the one without; empty: not that the repair mends it.

    Args:
        left: what the rules find in it.
    """
    last, stopped = after.record.ended, before.record.ended.failure
    if last.own_error or last.hindrance or last.status:
        return ""
    ended = (*after.record.earlier, last)[0]  # copies went past the others
    if ended.failure is not None:
        if stopped is None:
            return ""
        if (stopped.type, stopped.message) != (ended.failure.type, ended.failure.message):
            return f"a further run gets past this, and stops with {ended.failure}"
        is_explained = first_fault(left) is not None  # by a fault that lies behind this one
        return f"a further run shows it no more, and stops as before with {ended.failure}" if is_explained else ""
    was, now = before.verdict, after.verdict
    if now.shown in _BETTER and (stopped is not None or was.shown not in _BETTER):
        return f"a further run learns: {now.why}"
    if stopped is not None:
        return "a further run goes on to its end"
    return "" if now.shown in _WORSE and was.shown not in _WORSE else "a further run shows it no more"
