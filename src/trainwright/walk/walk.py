"""The state of one walk: facts, findings, repairs in force, and times."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from trainwright.adapters.base import Run
from trainwright.core import WALKED, Facts, Failure, Finding, PartMissing, Severity, Stage, proof_by_repair
from trainwright.core.report import CUT_OFF, Report
from trainwright.core.rule import Rule, load_rules
from trainwright.core.sample import Sample
from trainwright.seams.failures import repair_log
from trainwright.seams.failures.blame import failure_of, is_own, own_errors, own_lines
from trainwright.stages import SetupFacts, Words
from trainwright.timing import now
from trainwright.walk.aftermath import Aftermath, alike, same_failure, same_fault
from trainwright.walk.clock import Clock
from trainwright.walk.closing import no_step, unreached
from trainwright.walk.profile import profile_of
from trainwright.walk.stage_runs import stage_run
from trainwright.walk.verdict import verdict_of

# The stages that a stage requires: if one of them failed, it is blocked.
_NEEDS = {
    Stage.DATASET: (Stage.SETUP,),
    Stage.BATCH: (Stage.SETUP,),
    Stage.FORWARD: (Stage.BATCH,),
    Stage.LOSS: (Stage.FORWARD,),
    Stage.GRADIENTS: (Stage.LOSS,),
    Stage.OPTIMIZER: (Stage.GRADIENTS,),
    Stage.EVALUATION: (Stage.LOSS,),
    Stage.OVERFIT: (Stage.OPTIMIZER,),
    Stage.BASELINE: (Stage.OVERFIT,),
}

ITSELF_FAILED = "internal error in Trainwright"
# The share of the remaining budget that an experiment may take: finding the cause matters more than the last stages.
EXPERIMENT_SHARE = 0.8


Ignored = Callable[[Finding], bool]


class Walk:
    """The state of a walk in progress."""

    def __init__(
        self,
        script: str,
        *,
        budget: float = 60.0,
        updates: int | None = None,
        ignored: Ignored = lambda finding: False,
        repair: bool = True,
        say: Callable[[str], None] = lambda text: None,
        strict: bool = False,
        seed: int = 0,
        shows: bool = True,
        rules: Sequence[Rule] | None = None,
    ) -> None:
        self.script = script
        self.seed = seed
        self.shows = shows
        """Whether single rows may be shown."""
        self.samples: tuple[Sample, ...] = ()
        self.clock = Clock(budget)
        self.updates = updates
        self.start_seconds: float | None = None
        self.facts: dict[type[Facts], Facts] = {}
        self.findings: list[Finding] = []
        self.repaired: tuple[str, ...] = ()
        self.runs: dict[Any, Run] = {}
        self.rates: dict[tuple[tuple[str, ...], int], dict[float, float]] = {}
        """The loss of one batch at each learning rate that was tried, by the repairs made before and the updates."""
        self.say = say
        self.message = ""
        self.interrupted = False
        self.internal_errors: list[str] = []
        self._rules = load_rules() if rules is None else rules
        self._ignored = ignored
        self._repair = repair
        self.strict = strict
        self.seconds: dict[Stage, float] = {}
        self.failures: dict[Stage, Failure] = {}
        self.waiting: list[Finding] = []
        """Found before the last repair, and not judged again since."""
        self._cut_off: list[str] = []
        self.skipped: dict[Stage, str] = {}
        self.blocked: dict[Stage, str] = {}
        self._step_seconds = 0.0
        self.fixed: set[int] = set()
        self._through: set[int] = set()
        self._failed_repairs: set[str] = set()
        self.aftermath = Aftermath()
        repair_log.begin()

    # What was measured

    @property
    def words(self) -> Words:
        """The words of the framework that is walked."""
        setup = self.facts.get(SetupFacts)
        return setup.words if isinstance(setup, SetupFacts) else Words()

    def learn(self, facts: Facts | Iterable[Facts | None] | None) -> None:
        """Store facts; they replace older facts of the same kind."""
        for one in facts if isinstance(facts, tuple) else (facts,):
            if isinstance(one, Facts):
                self.facts[type(one)] = one
                self.aftermath.measured(one)
                failure = getattr(one, "failure", None) or getattr(one, "second_failure", None)
                self._seen_at(one.stage, failure)

    def forget(self, stages: Iterable[Stage]) -> None:
        """Drop the facts of stages that will be measured again."""
        self.facts = {kind: f for kind, f in self.facts.items() if f.stage not in stages}

    def learn_run(self, stage: Stage, run: Run, facts: Facts) -> None:
        """Store the facts of a training run, unless it raised."""
        self._seen_at(stage, run.failure)
        if run.failure is None and run.losses:
            self.learn(facts)

    def _seen_at(self, stage: Stage, failure: Failure | None) -> None:
        """Record that a stage was measured with the current repairs in force, and what it raised, if anything."""
        self.aftermath.walked(stage, failed=failure is not None)
        mended = {id(f) for f in self.findings if id(f) in self.fixed and f.stage == stage}
        self.failures.pop(stage, None)
        self._through -= mended
        if failure is not None:
            self.failures[stage] = failure
        else:
            self._through |= mended

    @property
    def step_seconds(self) -> float:
        """How long a step takes; 0 until steps have been timed."""
        return self._step_seconds

    @property
    def knows_step_seconds(self) -> bool:
        """Whether steps have been timed."""
        return self._step_seconds > 0

    def learn_step_seconds(self, run: Run) -> None:
        """Store how long a step takes, in seconds."""
        if run.losses:
            self._step_seconds = run.seconds / len(run.losses)

    def affordable_steps(self, wanted: int, fewest: int) -> int:
        """How many steps a run may have so that it takes at most half of the remaining budget, but at least the fewest."""
        if not self._step_seconds:
            return wanted
        return min(wanted, max(int(self.clock.left / 2 / self._step_seconds), fewest))

    def affords(self, steps: int) -> bool:
        """Whether the budget allows an experiment with this total number of steps."""
        return steps * self._step_seconds <= EXPERIMENT_SHARE * self.clock.left

    @contextmanager
    def timing(self, stages: tuple[Stage, ...]) -> Iterator[None]:
        """Add the time spent inside to the first of these stages, which are measured together."""
        started = now()
        try:
            yield
        finally:
            spent = now() - started
            self.seconds[stages[0]] = self.seconds.get(stages[0], 0.0) + spent

    # What may run

    def may_run(self, stage: Stage) -> bool:
        """Whether a stage can be measured; if not, the reason is stored."""
        self.blocked.pop(stage, None)
        self.skipped.pop(stage, None)
        for needed in _NEEDS.get(stage, ()):
            if needed in self.failures:
                self.blocked[stage] = f"the {needed.label} stage failed"
                return False
        if self.clock.over and stage != Stage.SETUP:
            self.skipped[stage] = f"the budget of {self.clock.budget:g} s ran out"
            return False
        for needed in _NEEDS.get(stage, ()):
            if needed in self.skipped:
                self.skipped[stage] = f"the {needed.label} stage was skipped"
                return False
            if not any(f.stage == needed for f in self.facts.values()):
                self.blocked[stage] = f"the {needed.label} stage could not be walked"
                return False
        if not self._repair and self.unmended and stage != Stage.SETUP:
            self.skipped[stage] = "stopped at the first fault (--no-repair)"
            return False
        self.say(f"walking {stage.label}")
        return True

    def skip(self, stage: Stage, why: str) -> None:
        """Record a stage that could not be measured through no fault of the pipeline."""
        self.skipped[stage] = why

    def rules_at(self, stage: Stage) -> list[Rule]:
        """The rules that wait for this stage and whose facts exist; residual rules last."""
        ready = [r for r in self._rules if r.runs_at == stage and all(k in self.facts for k in r.needs)]
        return sorted(ready, key=lambda r: r.order)

    def rules_of_setup(self) -> list[Rule]:
        """The rules that need only the setup facts and so can run even if no training was reached."""
        return [r for r in self._rules if all(k.stage == Stage.SETUP for k in r.needs) and r.needs and not r.residual]

    def explained(self, stage: Stage, found: Sequence[Finding] = ()) -> bool:
        """Whether the cause of this stage's failure is already known; anything else may be its consequence."""
        silent = {r.code for r in self._rules if not r.raises}
        return stage in self.failures and any(
            f.stage <= stage and f.severity == Severity.ERROR and f.code not in silent and id(f) not in self.fixed
            for f in (*self.findings, *found)
        )

    def failed_before(self, stage: Stage) -> bool:
        """Whether an earlier stage failed and has not been measured again since."""
        return any(failed < stage for failed in self.failures)

    # What was found

    @property
    def unmended(self) -> bool:
        """Whether there is an error or warning that no repair has removed."""
        return self.unmended_with(())

    def unmended_with(self, found: Sequence[Finding]) -> bool:
        """The same, with findings that are not kept yet."""
        return any(f.severity != Severity.NOTE and id(f) not in self.fixed for f in (*self.findings, *found))

    def has_cause_with(self, found: Sequence[Finding]) -> bool:
        """Whether an unrepaired error or warning, kept or not yet, says why, not only that nothing is learned."""
        return any(f.severity != Severity.NOTE and id(f) not in self.fixed for f in self._causes(found))

    def _causes(self, found: Sequence[Finding] = ()) -> list[Finding]:
        general = {r.code for r in self._rules if r.general}
        return [f for f in (*self.findings, *found) if f.code not in general]

    @property
    def broken(self) -> bool:
        """Whether a stage failed, or an error stands that no repair has removed."""
        errors = (f for f in self.findings if f.severity == Severity.ERROR)
        return bool(self.failures) or any(id(f) not in self.fixed for f in errors)

    def keep(self, finding: Finding) -> bool:
        """Keep a finding unless it is ignored or already known; returns whether it was kept."""
        if self.is_known(finding):
            return False
        self.findings.append(finding)
        if finding.stage == Stage.BASELINE and finding.severity != Severity.NOTE and finding in self._causes():
            self.findings = self._causes()
        return True

    def is_known(self, finding: Finding) -> bool:
        """Whether a finding is ignored, or is one that was kept before; a repair of it, then, did not take effect."""
        again = [f for f in self.findings if self._is_again(f, finding)]
        self.fixed -= {id(f) for f in again}
        return bool(again) or self._ignored(finding)

    def _is_again(self, known: Finding, finding: Finding) -> bool:
        if same_fault(known, finding):
            return True
        # Its numbers have changed with the repair of another fault.
        return id(known) not in self.fixed and known.after_repair != finding.after_repair and alike(known, finding)

    def repair_allowed(self, most: int) -> bool:
        """Whether one more repair may be applied."""
        return self._repair and len(self.repaired) < most

    def mended(self, finding: Finding) -> None:
        """Record that a finding's repair is in force."""
        self.fixed.add(id(finding))
        self.aftermath.repaired(finding)
        self.repaired = (*self.repaired, finding.name)
        for stage in [s for s in self.failures if s >= finding.stage]:
            del self.failures[stage]

    def repair_failed(self, finding: Finding, error: BaseException) -> None:
        """Record that a repair raised: its finding stays, without the repair."""
        self.findings[self.findings.index(finding)] = replace(finding, repair=None)
        for known in (self.fixed, self._through):  # its identity may come again
            known.discard(id(finding))
        if not isinstance(error, PartMissing):
            self.internal_error(f"repair of {finding.name}", error)

    def cut_off(self, what: str) -> None:
        """Record an experiment that the budget did not allow."""
        self._cut_off.append(what)

    def internal_error(self, where: str, error: BaseException) -> None:
        """Record an error of our own; in our tests it is raised.

        Raises:
            BaseException: the error itself, when the walk is strict.
        """
        if self.strict:
            raise error
        last = traceback.extract_tb(error.__traceback__)[-1:]
        at = f" ({last[0].filename.rsplit('/', 1)[-1]}:{last[0].lineno})" if last else ""
        said = "\n  ".join([f"{where}: {type(error).__name__}: {error}{at}", *own_lines(error)])
        if said not in self.internal_errors:
            self.internal_errors.append(said)

    def note_own_errors(self) -> None:
        """Record our own errors that probes and repairs have met inside the user's calls so far."""
        for error in own_errors():
            self.internal_error("a probe", error)
        for does, error in repair_log.failed_repairs().items():
            if does in self._failed_repairs:
                continue
            self._failed_repairs.add(does)
            of = [f for f in self.findings if f.repair is not None and f.repair.does == does]
            for finding in of:
                self.repaired = tuple(name for name in self.repaired if name != finding.name)
                self.repair_failed(finding, error)
            if not of:
                self.internal_error(f"repair tried: {does}", error)

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """Record an error, unexpected by the adapter, that was raised while a stage was measured."""
        if is_own(error, measuring=True):
            self.blocked[stage] = ITSELF_FAILED
            self.internal_error(f"measuring {stage.label}", error)
            return
        self._seen_at(stage, failure_of(error))

    # What becomes of it

    def report(self, framework: str | None = None, versions: Mapping[str, str] | None = None) -> Report:
        """The report, as plain data."""
        findings = tuple(self._finished(f) for f in self.findings)
        stages = tuple(stage_run(self, stage, findings) for stage in WALKED)
        caused = [f for s, f in self.failures.items() if self._has_cause(s)]
        failed = [f for _, f in sorted(self.failures.items()) if not any(same_failure(f, one) for one in caused)]
        message = self.message
        if self._cut_off:
            cut = "; ".join(dict.fromkeys(self._cut_off))
            message = (
                f"{message} The budget of {self.clock.budget:.0f} s {CUT_OFF} ({cut}); "
                f"--budget {4 * self.clock.budget:.0f} allows them."
            ).strip()
        setup = self.facts.get(SetupFacts)
        size = setup.parameters if isinstance(setup, SetupFacts) else 0
        message = f"{message} {unreached(stages, self.clock.budget, size)}".strip()
        report = Report(
            script=self.script,
            framework=framework,
            versions=versions or {},
            seconds=self.clock.spent,
            start_seconds=self.start_seconds,
            findings=tuple(sorted(findings, key=lambda f: (len(f.after_repair), int(f.code[2:])))),
            stages=stages,
            verdict=verdict_of(self, failed),
            profile=profile_of(self),
            samples=self.samples,
            message=message,
            failure=failed[0] if failed else None,
            internal_errors=tuple(self.internal_errors),
        )
        unmeasured = SetupFacts in self.facts and not (report.walked or report.faulty or self.interrupted)
        return (
            replace(report, message=f"{message} {no_step(self.clock.budget, size)}".strip()) if unmeasured else report
        )

    def _has_cause(self, stage: Stage) -> bool:
        # What was found of a script that ended before its training explains that end, whatever stage it belongs to.
        ended = stage == Stage.SETUP
        left = (f for f in self.findings if f.severity == Severity.ERROR and id(f) not in self.fixed)
        return any(ended or f.stage <= stage for f in left)

    def _finished(self, finding: Finding) -> Finding:
        """The finding with its fix marked as tried where the repair was seen to remove it."""
        if finding.repair is None or not self.tried(finding):
            return finding
        fix = replace(finding.fix, tried=True) if finding.fix else None
        return replace(finding, fix=fix, proof=finding.proof or proof_by_repair(finding))

    def tried(self, finding: Finding) -> bool:
        """Whether a finding's repair was seen to remove it.

        Calls used it, its stage was measured with it in force and passed, and what lies behind is no worse than without.
        """
        return (
            id(finding) in self.fixed
            and id(finding) in self._through
            and finding.stage not in self.failures
            and finding.repair is not None
            and repair_log.was_made(finding.repair)
            and not self.aftermath.worse(finding, self._stands)
        )

    def _stands(self, finding: Finding) -> bool:
        return any(alike(f, finding) and not self.tried(f) for f in self.findings)
