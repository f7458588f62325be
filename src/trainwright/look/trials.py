"""Trials of one change on the replayed steps of a training, behind the run: asked for by rules, within a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Run, Train
from trainwright.adapters.torch import runs
from trainwright.adapters.torch.crossed_rows import crossed_targets
from trainwright.core import Rule
from trainwright.core.trial import Outcome, Trial
from trainwright.look.facts import change
from trainwright.look.judging import judge_facts
from trainwright.look.replay import OFFERED, Replay
from trainwright.look.sets import add_sets
from trainwright.look.state import Look
from trainwright.stages import LossFacts, OptimizerFacts, OverfitFacts

# All trials of a script together take no longer, in seconds of the processor; nor longer than its run and the first of these.
FEWEST_SECONDS, SECONDS = 15.0, 25.0
# Steps on one batch, and the fewest that show anything; the fewest of a trial.
STEPS, FEWEST_STEPS, FEWEST_TRIED = 30, 8, 6

Outcomes = dict[tuple[str, int], Outcome]


def try_changes(looks: Sequence[Look], seconds: float) -> dict[int, dict[str, Any]]:
    """Read the sets of each training, ask the rules, and make the trials that they ask for; the facts and outcomes, by the
    training's number.

    Args:
        seconds: what the run itself took.
    """
    found: dict[int, dict[str, Any]] = {}
    for number, look in enumerate(looks):
        later = [one.trainer.model for one in looks[number + 1 :] if one.trainer is not None]
        if look.trainer is not None and not any(look.trainer.model is model for model in later):
            from trainwright.look.of_trainer import add_trained

            add_trained(look)
    faithful = [look for look in looks if is_faithful(look)]
    for look in looks:
        add_sets(look.facts, look.sets, look.replay if look in faithful else None)
        found.setdefault(look.training, {"facts": look.facts})
    until = thread_time() + min(SECONDS, FEWEST_SECONDS + seconds)
    for look in faithful:
        if look.pairings:
            change(look.facts, LossFacts, crossed=crossed_targets(look.pairings, look.replay, look.replay.tapes))
        trials = _Trials(look.replay, until)
        if (overfit := trials.memorize()) is not None:
            facts = {**look.facts, OverfitFacts: overfit}
            judge_facts(facts, trials.answer, [])
            if found[look.training]["facts"] is look.facts:
                found[look.training] = {"facts": facts, "outcomes": trials.outcomes}
    return found


def is_faithful(look: Look) -> bool:
    """Whether the first steps of a training can be made again."""
    optimizer = look.facts.get(OptimizerFacts)
    return isinstance(optimizer, OptimizerFacts) and look.replay.is_faithful(optimizer.learning_rate, look.rates)


class _Trials:
    """The trials of one training."""

    def __init__(self, replay: Replay, until: float) -> None:
        self.outcomes: Outcomes = {}
        self._replay, self._until = replay, until
        self._runs: dict[Any, Run] = {}

    def memorize(self) -> OverfitFacts | None:
        """Steps on one batch; None where only a few could be afforded."""
        steps = min(STEPS, int((self._until - thread_time()) / 2 / self._replay.step_seconds))
        if steps < FEWEST_STEPS:
            return None
        run = self._train(Train(steps=steps, batches=1, seed=0))
        if run.failure is not None or not run.losses:
            return None
        self._runs["", 1, 0] = run
        return short_runs.overfit_facts(run)

    def answer(self, rule: Rule, number: int, trial: Trial) -> Outcome:
        """The outcome of a rule's trial of this number."""
        outcome = self.outcomes[rule.name, number] = self._make(trial)
        return outcome

    def _make(self, trial: Trial) -> Outcome:
        changes = (*trial.alongside, trial.change, *((trial.against,) if trial.against else ()))
        if len(self._replay.tapes) < trial.batches or any(change.seam not in OFFERED for change in changes):
            return short_runs.cut_off(trial)
        arms = [
            [short_runs.key_of(trial, change, seed) for seed in range(trial.seeds)]
            for change in (trial.against, trial.change)
        ]
        keys = [key for arm in arms for key in arm]
        left = (self._until - thread_time()) / self._replay.step_seconds
        choices = (trial.steps, max(trial.steps // 2, FEWEST_TRIED))
        steps = next((n for n in choices if n * sum(not self._covers(key, n) for key in keys) <= left), 0)
        if not steps:
            return short_runs.cut_off(trial)
        for arm, of_arm in zip((trial.against, trial.change), arms):
            for seed, key in enumerate(of_arm):
                if not self._covers(key, steps):
                    changes = (*trial.alongside, *((arm,) if arm else ()))
                    self._runs[key] = self._train(Train(steps=steps, batches=trial.batches, seed=seed, changes=changes))
        before, after = ([self._runs[key] for key in of_arm] for of_arm in arms)
        return short_runs.outcome_of(trial, steps, before, after)

    def _covers(self, key: Any, steps: int) -> bool:
        return short_runs.covers(self._runs.get(key), steps)

    def _train(self, request: Train) -> Run:
        return runs.train(self._replay, request)  # type: ignore[arg-type]
