"""What rules have said and the run has refuted: no sentence may contradict what the run was seen to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from trainwright.core import Fate, Finding, Outcome, Severity, Shown, Stage, Verdict
from trainwright.core.trial import LOSS
from trainwright.frameworks.packages import TrainingKind
from trainwright.registry import load_fact_rules
from trainwright.rehearsal.record import Record
from trainwright.review.consequences import causes_of

# A schedule was tried over another plan than the run had, if its updates differ by more.
SAME_PLAN = 0.1


def learns(verdict: Verdict | None) -> bool:
    """Whether a verdict says that something is learned."""
    return verdict is not None and verdict.shown in (Shown.LEARNS, Shown.LEARNS_IN_PART)


@cache
def _fates() -> dict[str, Fate]:
    return {one.name: one.foretells for one in load_fact_rules() if one.foretells is not None}


@dataclass(frozen=True)
class RunEvidence:
    """What the run of the script, as it is, was seen to do."""

    record: Record

    @property
    def went_on(self) -> bool:
        """Whether it made updates, and nothing but the time ended it; a copy refutes nothing of the script."""
        ended = self.record.ended
        return self.record.updates > 0 and not (ended.failure or ended.status or ended.own_error or self.record.changed)

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end, its whole plan done."""
        return self.went_on and not self.record.is_cut

    @property
    def trains(self) -> bool:
        """Whether all weights that its optimizers hold get gradients and move, and no others get any."""
        trainable = [one for one in self.record.parameters if one.is_trainable]
        held = [one for one in trainable if one.is_held]
        return bool(held) and all(
            one.had_gradient and one.has_moved if one.is_held else not one.had_gradient for one in trainable
        )

    @property
    def trained_what_is_frozen(self) -> bool:
        """Whether weights that are frozen in the end were trained before."""
        return any(one.is_held and one.has_moved and not one.is_trainable for one in self.record.parameters)

    def has_another_plan(self, finding: Finding) -> bool:
        """Whether the run makes another number of updates than a finding about a plan says."""
        said, size = finding.measured.get("planned_updates"), finding.measured.get("batches_per_update", 1)
        if not isinstance(said, int) or not isinstance(size, int):
            return False
        # Of Keras's fit, what is counted are batches.
        of = [
            (one.planned or self.record.updates_in(one), one.kind == TrainingKind.FIT) for one in self.record.trainings
        ]
        plans = [(plan, said * size if is_fit else said) for plan, is_fit in of if plan]
        return bool(plans) and all(abs(plan - told) > SAME_PLAN * max(plan, told) for plan, told in plans)

    def reports(self, name: object) -> bool:
        """Whether it reported a value of this name, which a finding misses."""
        return isinstance(name, str) and name.lower() in {n.name for n in self.record.numbers if n.source != "printed"}

    def says_more(self, finding: Finding) -> bool:
        """Whether the run has stopped at a line of which a rule could only guess what happens there."""
        ends = [one.failure for one in (*self.record.earlier, self.record.ended) if one.failure is not None]
        return "script-stopped" in causes_of(finding) and finding.where in [end.where for end in ends]

    def refutes(self, finding: Finding, verdict: Verdict | None) -> bool:
        """Whether what a finding foretells was seen not to happen."""
        fate = _fates().get(finding.name)
        if fate == Fate.LEARNS_NOTHING:
            return learns(verdict)
        if finding.is_by_probe and verdict is not None and verdict.shown == Shown.LEARNS:
            return True
        if not self.went_on or finding.is_silent:
            return False
        if fate == Fate.STOPS:
            missed = finding.measured.get("monitor") or finding.measured.get("metric_for_best_model")
            return self.is_whole or finding.stage < Stage.EVALUATION or self.reports(missed)
        if fate == Fate.STANDS_STILL:
            return self.trains
        if fate == Fate.UNTRAINED:
            return self.trained_what_is_frozen
        if fate == Fate.SPOILS_THE_PLAN:
            return self.is_whole and self.has_another_plan(finding)
        return False


def without_refuted(findings: Sequence[Finding], record: Record, verdict: Verdict | None) -> list[Finding]:
    """The findings that the run has not refuted.

    Args:
        verdict: what the run shows.
    """
    seen = RunEvidence(record)
    left = [one for one in findings if not seen.refutes(one, verdict) and not seen.says_more(one)]
    is_unjudged = verdict is not None and verdict.shown == Shown.CANNOT_BE_JUDGED
    return [_without_weight(one) for one in left] if is_unjudged else left


def name_errors(findings: Sequence[Finding]) -> str:
    """The first error's name, and how many more there are; empty: none."""
    names = list(dict.fromkeys(one.name for one in findings if one.severity == Severity.ERROR))
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def _without_weight(finding: Finding) -> Finding:
    """A warning that rests on the losses of a trial alone, as a note: where losses have no labels of rows (a policy's, a
    game's), a lower one is no better answer."""
    proof = finding.proof
    is_by_loss = isinstance(proof, Outcome) and proof.judged_by == LOSS and not proof.constant
    return replace(finding, severity=Severity.NOTE) if is_by_loss and finding.severity == Severity.WARNING else finding
