"""Trials of one change, of any framework: for which of them there is time, and what each has shown."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import ShortRun, Train
from trainwright.core import Outcome, Repair, Rule, Trial
from trainwright.stages import OverfitFacts

# All trials of a script together take no longer, in seconds of the processor; nor longer than its run and the first of these.
FEWEST_SECONDS, SECONDS = 15.0, 25.0
# Steps on one batch, and the fewest that show anything; the fewest of a trial.
STEPS, FEWEST_STEPS, FEWEST_TRIED = 30, 8, 6

Outcomes = dict[tuple[str, int], Outcome]


class Trials:
    """The trials of one training.

    Args:
        train: takes steps from the training's first weights.
        can_try: whether steps can be taken on so many batches with these changes.
        step_seconds: of one step.
        until: no trial begins behind this time of the clock.
    """

    def __init__(
        self,
        train: Callable[[Train], ShortRun],
        can_try: Callable[[int, tuple[Repair, ...]], bool],
        step_seconds: float,
        until: float,
        clock: Callable[[], float] = thread_time,
    ) -> None:
        self.outcomes: Outcomes = {}
        self._untried: list[str] = []
        """What was given up for lack of time."""
        self._train, self._can_try, self._step_seconds = train, can_try, step_seconds
        self._until, self._clock = until, clock
        self._runs: dict[Any, ShortRun] = {}

    def memorize(self) -> OverfitFacts | None:
        """Steps on one batch; None where only a few could be afforded."""
        steps = min(STEPS, int((self._until - self._clock()) / 2 / self._step_seconds))
        if steps < FEWEST_STEPS:
            self._untried.append("one batch by heart")
            return None
        run = self._train(Train(steps=steps, batches=1, seed=0))
        if run.failure is not None or not run.losses:
            return None
        self._runs["", 1, 0] = run
        return short_runs.overfit_facts(run)

    def answer(self, rule: Rule, number: int, trial: Trial) -> Outcome:
        """The outcome of a rule's trial of this number."""
        outcome = self.outcomes[rule.name, number] = self._make(rule, trial)
        return outcome

    def tell_untried(self) -> str:
        """What was not tried, and why; empty: nothing."""
        what = "; ".join(dict.fromkeys(self._untried))
        return what and f"Not tried for lack of time, as one step takes {self._step_seconds:.2g} s: {what}."

    def _make(self, rule: Rule, trial: Trial) -> Outcome:
        changes = (*trial.alongside, trial.change, *((trial.against,) if trial.against else ()))
        if not self._can_try(trial.batches, changes):
            return trial.cut_off
        arms = [
            [short_runs.key_of(trial, change, seed) for seed in range(trial.seeds)]
            for change in (trial.against, trial.change)
        ]
        keys = [key for arm in arms for key in arm]
        left = (self._until - self._clock()) / self._step_seconds
        choices = (trial.steps, max(trial.steps // 2, FEWEST_TRIED))
        steps = next((n for n in choices if n * sum(not self._covers(key, n) for key in keys) <= left), 0)
        if not steps:
            self._untried.append(f"{trial.change.does} ({rule.name})")
            return trial.cut_off
        for arm, of_arm in zip((trial.against, trial.change), arms):
            for seed, key in enumerate(of_arm):
                if not self._covers(key, steps):
                    changes = (*trial.alongside, *((arm,) if arm else ()))
                    self._runs[key] = self._train(Train(steps=steps, batches=trial.batches, seed=seed, changes=changes))
        before, after = ([self._runs[key] for key in of_arm] for of_arm in arms)
        return short_runs.outcome_of(trial, steps, before, after)

    def _covers(self, key: Any, steps: int) -> bool:
        return short_runs.covers(self._runs.get(key), steps)
