"""Experiments: turns a rule's trials into training runs and their outcomes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Learn, Run, Train
from trainwright.core import Finding, Repair, Rule
from trainwright.core.trial import LOSS, Outcome, Trial
from trainwright.stages import LearningFacts, Longer, OptimizerFacts

if TYPE_CHECKING:
    from trainwright.walk.walk import Walk


# The share of the time left that showing whether the training learns may take.
LEARNING_SHARE = 0.4
# If fewer updates fit into that time, nothing is shown.
FEWEST_AFFORDED = 16
# With fewer steps, only few models show the difference between a rate that works and one that does not.
FEWEST_STEPS = 6


def experiment(walk: Walk, rule: Rule, *, trials: bool = True) -> Generator[Any, Any, list[Finding] | None]:
    """Run a rule, carry out its trials and send it their outcomes. An error in the rule itself is recorded.

    Args:
        trials: False: a rule that asks for a trial is left, and None returned.
    """
    findings: list[Finding] = []
    try:
        answer = rule.function(**{n: walk.facts.get(kind) for n, kind, _ in rule.parameters})
        sent: Outcome | LearningFacts | None = None
        while answer is not None:
            try:
                item = answer.send(sent) if sent is not None else next(answer)  # type: ignore[union-attr, arg-type]
            except StopIteration:
                break
            sent = None
            if not isinstance(item, Finding) and not trials:
                return None
            if isinstance(item, Trial):
                sent = yield from run_trial(walk, item)
            elif isinstance(item, Longer):
                walk.say(f"experiment: {item.change.does}")
                sent = yield from learn(walk, (item.change,))
            else:
                findings.append(
                    replace(
                        item,
                        code=rule.code,
                        name=rule.name,
                        severity=rule.severity_of(item),
                        after_repair=walk.repaired,
                    )
                )
    except Exception as error:  # a rule of ours is wrong: it must not end the user's walk
        walk.internal_error(f"rule {rule.code} {rule.name}", error)
    return findings


def learn(walk: Walk, changes: tuple[Repair, ...] = ()) -> Generator[Learn, LearningFacts, LearningFacts]:
    """A training that is looked at on held-out rows, if the budget allows enough updates."""
    optimizer, shows = walk.facts.get(OptimizerFacts), walk.shows and not changes
    planned = optimizer.planned_updates if isinstance(optimizer, OptimizerFacts) else None
    seconds = LEARNING_SHARE * walk.clock.left
    if walk.step_seconds * FEWEST_AFFORDED > seconds:
        return LearningFacts(
            planned=planned, cut=f"fewer than {FEWEST_AFFORDED} updates fit into the budget of {walk.clock.budget:g} s"
        )
    if walk.updates is None or (planned is not None and planned <= walk.updates):
        return (yield Learn(planned=planned, seed=walk.seed, seconds=seconds, changes=changes, shows=shows))
    facts = yield Learn(planned=walk.updates, seed=walk.seed, seconds=seconds, changes=changes, shows=shows)
    return replace(facts, planned=planned, cut=facts.cut or f"no more than {walk.updates:,} updates were allowed")


def run_trial(walk: Walk, trial: Trial) -> Generator[Train, Run, Outcome]:
    """Run both arms of a trial on every seed, from the same weights and rows."""
    arms = [
        [(walk.repaired, *short_runs.key_of(trial, change, seed)) for seed in range(trial.seeds)]
        for change in (trial.against, trial.change)
    ]
    keys = [key for arm in arms for key in arm]
    if not walk.knows_step_seconds:
        walk.learn_step_seconds((yield Train(steps=2, batches=1, seed=0)))
    for steps in (trial.steps, max(trial.steps // 2, FEWEST_STEPS)):
        affordable = walk.affords(steps * sum(not short_runs.covers(walk.runs.get(key), steps) for key in keys))
        if affordable:
            break
    if walk.clock.over or not affordable:
        walk.cut_off(trial.change.does)
        return short_runs.cut_off(trial)
    for change, keys in zip((trial.against, trial.change), arms):
        for seed, key in enumerate(keys):
            if not short_runs.covers(walk.runs.get(key), steps):
                walk.say(f"experiment: {change.does}" if change else "experiment: the script unchanged")
                walk.runs[key] = yield Train(
                    steps=steps,
                    batches=trial.batches,
                    seed=seed,
                    changes=(*trial.alongside, *((change,) if change else ())),
                )
    before, after = ([walk.runs[key] for key in keys] for keys in arms)
    outcome = short_runs.outcome_of(trial, steps, before, after)
    if not outcome.cut_off:
        _note_rates(walk, trial, steps, before, after)
    return outcome


def _note_rates(walk: Walk, trial: Trial, steps: int, before: Sequence[Run], after: Sequence[Run]) -> None:
    """Keep the losses of a trial that compares learning rates on one batch, and nothing else."""
    optimizer = walk.facts.get(OptimizerFacts)
    factors = [1.0 if one is None else one.rate_factor for one in (trial.against, trial.change)]
    known = [one for one in factors if one is not None]
    if len(known) < len(factors):
        return
    if not isinstance(optimizer, OptimizerFacts) or trial.batches != 1 or trial.alongside or trial.judged_by != LOSS:
        return
    for factor, runs in zip(known, (before, after)):
        rate = float(f"{factor * optimizer.learning_rate:.3g}")
        walk.rates.setdefault((walk.repaired, steps), {})[rate] = fmean(short_runs.mean_end(run, steps) for run in runs)
