"""Experiments: turns a rule's trials into training runs and their outcomes."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

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
        [_key(walk, trial, change, seed) for seed in range(trial.seeds)] for change in (trial.against, trial.change)
    ]
    keys = [key for arm in arms for key in arm]
    if not walk.knows_step_seconds:
        walk.learn_step_seconds((yield Train(steps=2, batches=1, seed=0)))
    for steps in (trial.steps, max(trial.steps // 2, FEWEST_STEPS)):
        affordable = walk.affords(steps * sum(not _covers(walk.runs.get(key), steps) for key in keys))
        if affordable:
            break
    if walk.clock.over or not affordable:
        walk.cut_off(trial.change.does)
        return Outcome(changed=trial.change.does, before=(), after=(), cut_off=True)
    for change, keys in zip((trial.against, trial.change), arms):
        for seed, key in enumerate(keys):
            if not _covers(walk.runs.get(key), steps):
                walk.say(f"experiment: {change.does}" if change else "experiment: the script unchanged")
                walk.runs[key] = yield Train(
                    steps=steps,
                    batches=trial.batches,
                    seed=seed,
                    changes=(*trial.alongside, *((change,) if change else ())),
                )
    before, after = ([walk.runs[key] for key in keys] for keys in arms)
    if any(r.skipped for r in (*before, *after)):
        return Outcome(changed=trial.change.does, before=(), after=(), cut_off=True)
    _note_rates(walk, trial, steps, before, after)
    return Outcome(
        changed=trial.change.does,
        before=tuple(_value(r, steps, trial) for r in before),
        after=tuple(_value(r, steps, trial) for r in after),
        judged_by=trial.judged_by,
        start=tuple(r.losses[0] if r.losses else math.nan for r in before),
        constant=_constants(before, after),
        steps=steps,
        without_effect=_agree(before, after, trial.batches),
    )


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
        walk.rates.setdefault((walk.repaired, steps), {})[rate] = fmean(_end(run, steps) for run in runs)


def _agree(before: Sequence[Run], after: Sequence[Run], batches: int) -> bool:
    """Whether a change did nothing: both arms are the same to the last bit, although the loss of a batch moves.

    A loss that stays as it was is the same with any change, of a model that gets no gradient, for example.
    """
    moved = all(any(x != y for x, y in zip(r.losses, r.losses[batches:])) for r in before)
    return moved and all((b.losses, b.predictions) == (a.losses, a.predictions) for b, a in zip(before, after))


def _constants(before: Sequence[Run], after: Sequence[Run]) -> tuple[float, ...]:
    """The loss of a constant prediction on each seed's rows, from either arm; empty if one is unknown."""
    known = [a.constant if b.constant is None else b.constant for b, a in zip(before, after)]
    return tuple(c for c in known if c is not None) if None not in known else ()


def _key(walk: Walk, trial: Trial, change: Repair | None, seed: int) -> tuple[Any, ...]:
    changes = (*trial.alongside, *((change,) if change else ()))
    key = (walk.repaired, ", ".join(c.does for c in changes), trial.batches, seed)
    # Classes are predicted only at the end of a run, so a longer run cannot stand in for a shorter one.
    return key if trial.judged_by == LOSS else (*key, trial.steps)


def _covers(run: Run | None, steps: int) -> bool:
    """Whether a run that was already made has the first steps of one that is asked for."""
    return run is not None and (run.failure is not None or bool(run.skipped) or len(run.losses) >= steps)


def _value(run: Run, steps: int, trial: Trial) -> float:
    """The number by which a run is judged; NaN if it failed or has no such number."""
    if trial.judged_by == LOSS:
        return _end(run, steps)
    if run.failure is not None or not run.predictions:
        return math.nan
    wrong = [p != t for p, t in zip(run.predictions, run.labels)]
    shares = [fmean(w for w, t in zip(wrong, run.labels) if t == label) for label in set(run.labels)]
    return fmean(shares)


def _end(run: Run, steps: int) -> float:
    """The mean loss over the last quarter of the first steps; NaN if it failed or any of them is."""
    losses = run.losses[:steps]
    if (run.failure is not None and len(losses) < steps) or not losses:
        return math.nan
    tail = losses[-max(1, len(losses) // 4) :]
    return sum(tail) / len(tail)
