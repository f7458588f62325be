"""What the rules find in a training's facts, the trials that they ask for, and a repair that is asked for by what was found."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from trainwright.core import FactsByKind, Finding, Outcome, Proof, Repair, Rule, Severity, Stage, Trial
from trainwright.look.results import LookResult
from trainwright.registry import load_fact_rules
from trainwright.stages import LearningFacts, SetupFacts

Answer = Callable[[Rule, int, Trial], Outcome]
# As many faults of a training are mended one after the other.
MOST_REPAIRS = 6


def first_fault(found: Iterable[Finding]) -> Finding | None:
    """The first finding that is no note: the one to mend."""
    return next((f for f in found if f.severity != Severity.NOTE), None)


def judge_facts(facts: FactsByKind, answer: Answer, found: list[Finding], *, is_end: bool = False) -> list[str]:
    """Add the first causes in a training, with the notes before them; returns what failed in rules of ours.

    Behind the first stage with an error or a warning nothing more is said: it may be the consequence. Of what raised, the
    first error that can raise is the cause.

    Args:
        answer: the outcome of a rule's trial of a number.
        found: what was found in the trainings before.
        is_end: the facts are of what raised.
    """
    failed: list[str] = []
    furthest = Stage.BASELINE if LearningFacts in facts else Stage.OVERFIT
    rules = [rule for rule in load_fact_rules() if rule.runs_at <= furthest]
    ready = [rule for rule in rules if set(rule.needs) <= set(facts) and not (is_end and _is_idle(rule))]
    ready.sort(key=lambda rule: (_asked_at(rule, facts), rule.order))
    for _, of_stage in groupby(ready, key=lambda rule: _asked_at(rule, facts)):
        of_facts: list[Finding] = []
        for rule in of_stage:
            asked = _ask(rule, facts, answer, [*found, *of_facts], failed)
            of_facts += [_with_end(f, facts) if is_end else f for f in asked]
            if is_end and of_facts:
                break
        known = {(f.name, f.where) for f in found}
        found += [f for f in of_facts if f not in found and not (is_end and (f.name, f.where) in known)]
        if first_fault(of_facts) is not None:
            break
    return failed


def ask_rule(rule: Rule, facts: FactsByKind, answer: Answer) -> Iterator[Finding]:
    """What a rule finds, until it asks for something else than a trial.

    Raises:
        Exception: the rule is wrong.
    """
    asked = rule.function(**{name: facts.get(kind) for name, kind, _ in rule.parameters})
    sent: Outcome | None = None
    number = 0
    while asked is not None:
        try:
            item = asked.send(sent) if sent is not None else next(asked)  # type: ignore[union-attr]
        except StopIteration:
            return
        sent = None
        if isinstance(item, Finding):
            yield replace(item, code=rule.code, name=rule.name, severity=rule.severity_of(item))
        elif isinstance(item, Trial):
            sent, number = answer(rule, number, item), number + 1
        else:
            return


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A repair that is to be in force in a run: of what a rule finds in the facts of a look."""

    rule: str
    does: str
    looked: LookResult

    def find(self) -> Repair | None:
        """The repair, which the rule makes anew."""
        rules = (rule for rule in load_fact_rules() if rule.name == self.rule)
        found = (f.repair for rule in rules for f in ask_rule(rule, self.looked.facts, self.looked.answer))
        return next((repair for repair in found if repair is not None and repair.does == self.does), None)


def _ask(rule: Rule, facts: FactsByKind, answer: Answer, found: list[Finding], failed: list[str]) -> Iterator[Finding]:
    if rule.residual and first_fault(found) is not None:
        return
    try:
        yield from ask_rule(rule, facts, answer)
    except Exception as error:  # a rule of ours is wrong: it must not end the user's check
        failed.append(f"rule {rule.code} {rule.name}: {''.join(traceback.format_exception_only(error)).strip()}")


def _asked_at(rule: Rule, facts: FactsByKind) -> Stage:
    """The stage after which all of its facts exist that there are."""
    return max((kind.stage for _, kind, _ in rule.parameters if kind in facts), default=rule.stage)


def _is_idle(rule: Rule) -> bool:
    """Whether a fault ends no run."""
    return rule.residual or rule.severity != Severity.ERROR or not (rule.raises or rule.stage == Stage.SETUP)


def _with_end(finding: Finding, facts: FactsByKind) -> Finding:
    """A finding of what raised: without a line or a proof of its own, the exception gives it."""
    failure = getattr(facts[SetupFacts], "failure", None)
    where = finding.where or getattr(failure, "where", None)
    return replace(finding, where=where, proof=finding.proof or Proof(f"the call raised {failure}"))
