"""Calls outside of training that ended the script: made again, and judged by the rules for the same call in a step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from trainwright.adapters.base import FailedCall, Run
from trainwright.adapters.script_end.raised import failure_in, is_repeated, is_same
from trainwright.core import Facts, Failure, Finding, PartMissing, Proof, Rule, Severity, Stage
from trainwright.frameworks.packages import LOOP
from trainwright.seams.failures.blame import is_own
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.stages.setup import SetupFacts
from trainwright.walk.trials import experiment
from trainwright.walk.undisturbed import undisturbed
from trainwright.walk.walk import Walk

# A call with more faults than this is not followed to its end.
MOST_FAULTS = 8
# The stages that such a call can show, after those of its inputs.
_STAGES = (Stage.BATCH, Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS)


def judge_failed_call(walk: Walk, error: Exception, failure: Failure, seen: Seen) -> None:
    """Find the cause of an exception that a call of a model, a loss or a loader raised before training."""
    try:
        # The budget is that of the walk: how long the script ran before does not count.
        with stopped_after(walk.clock.budget), muted(), quiet(), undisturbed():
            call = _failed_call(error, seen)
            if call is not None:
                _judge(walk, call, failure)
    except OutOfTime:
        pass  # the failure is reported without a cause
    except Exception as raised:  # ours, or the user's: when it was called again, something else failed
        if is_own(raised, measuring=True):
            walk.internal_error("a call before training", raised)
    finally:
        walk.forget(_STAGES)
        walk.forget((Stage.DATASET,))
        for stage in [s for s in walk.failures if s != Stage.SETUP]:  # reported where it ended the script
            del walk.failures[stage]
    walk.note_own_errors()


def _failed_call(error: Exception, seen: Seen) -> FailedCall | None:
    if not all(package in sys.modules for package in LOOP):
        return None
    from trainwright.adapters.torch.failed_call import failed_call

    return failed_call(error, seen)


def _judge(walk: Walk, call: FailedCall, failure: Failure) -> None:
    """Find the call's faults one after another, each with the repairs of those before it in force."""
    facts = call.measure()
    raised = failure_in(facts)
    if raised is None or not is_repeated(raised, failure):
        return  # the call depends on something that has changed
    setup = walk.facts[SetupFacts]
    assert isinstance(setup, SetupFacts)
    for _ in range(MOST_FAULTS):
        walk.learn((call.known(setup), *facts))
        facts = _first_cause(walk, call, replace(raised, where=raised.where or failure.where))
        raised = failure_in(facts)
        if raised is None:
            walk.learn(facts)
            return


def _first_cause(walk: Walk, call: FailedCall, raised: Failure) -> tuple[Facts, ...]:
    """Keep the first finding that explains the failure; the facts of the call with its repair, none without."""
    for finding in _findings(walk):
        repaired = _with_repair(walk, call, finding)
        after = failure_in(repaired) if repaired is not None else None
        if after is not None and is_same(after, raised):
            continue  # without this fault, the call still fails as before
        finding = replace(finding, where=finding.where or raised.where)
        if repaired is None:
            finding = replace(finding, repair=None, proof=finding.proof or Proof(f"the call raised {raised}"))
        if walk.keep(finding):
            if repaired is not None:
                walk.mended(finding)
            return repaired or ()
    return ()


def _with_repair(walk: Walk, call: FailedCall, finding: Finding) -> tuple[Facts, ...] | None:
    """The facts of the call with a finding's repair in force; None if it has none for this call."""
    if finding.repair is None:
        return None
    try:
        call.apply(finding.repair)
    except (PartMissing, KeyError):  # the repair changes a part that only training has
        return None
    except Exception as error:  # ours: the finding stands without its repair
        walk.internal_error(f"repair of {finding.name}", error)
        return None
    return call.measure()


def _findings(walk: Walk) -> Iterator[Finding]:
    """The errors that the rules find in the facts and that can make a call raise."""
    for stage in _STAGES:
        for rule in walk.rules_at(stage):
            if rule.raises and not rule.residual and rule.severity == Severity.ERROR:
                yield from (f for f in findings_of(walk, rule) if f.severity == Severity.ERROR)


def findings_of(walk: Walk, rule: Rule) -> list[Finding]:
    """The findings of a rule before there is anything to train; experiments give it no outcome."""
    steps = experiment(walk, rule)
    try:
        next(steps)
        while True:
            steps.send(Run(skipped="training was not reached"))
    except StopIteration as end:
        return list(end.value or [])
