"""Behind the run of a script with torch: its sets are read, the rules asked, and their trials made on the kept first steps."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import ShortRun, Train
from trainwright.adapters.torch.crossed_rows import crossed_targets
from trainwright.core import Repair
from trainwright.look.asking import judge_facts
from trainwright.look.facts import set_fields
from trainwright.look.replay import OFFERED, Replay
from trainwright.look.sets import add_sets
from trainwright.look.state import Look
from trainwright.look.trials import FEWEST_SECONDS, SECONDS, Trials
from trainwright.stages import LossFacts, OptimizerFacts, OverfitFacts


def try_changes(looks: Sequence[Look], seconds: float) -> dict[int, dict[str, Any]]:
    """Read the sets of each training, ask the rules, and make the trials that they ask for; the facts and outcomes, by the
    training's number.

    Args:
        seconds: what the run itself took.
    """
    found: dict[int, dict[str, Any]] = {}
    asked = [look for look in looks if look.kind is not None]
    for number, look in enumerate(asked, 1):
        if not any(look.kind.model is one.kind.model for one in asked[number:]):
            look.kind.add_trained(look)
    faithful = [look for look in looks if is_faithful(look)]
    for look in looks:
        add_sets(look.facts, look.sets, look.replay if look in faithful else None)
        found.setdefault(look.training, {"facts": look.facts})
    until = thread_time() + min(SECONDS, FEWEST_SECONDS + seconds)
    for look in faithful:
        if look.broadcasts:
            set_fields(look.facts, LossFacts, crossed=crossed_targets(look.broadcasts, look.replay, look.replay.tapes))
        trials = _trials_of(look.replay, until)
        if (overfit := trials.memorize()) is not None:
            facts = {**look.facts, OverfitFacts: overfit}
            judge_facts(facts, trials.answer, [])
            if found[look.training]["facts"] is look.facts:
                found[look.training] = {"facts": facts, "outcomes": trials.outcomes, "untried": trials.tell_untried()}
        elif trials.tell_untried():
            judge_facts(look.facts, trials.answer, [])  # what would be asked for is told
            found[look.training].setdefault("untried", trials.tell_untried())
    return found


def is_faithful(look: Look) -> bool:
    """Whether the first steps of a training can be made again."""
    optimizer = look.facts.get(OptimizerFacts)
    return isinstance(optimizer, OptimizerFacts) and look.replay.is_faithful(optimizer.learning_rate, look.rates)


def _trials_of(replay: Replay, until: float) -> Trials:
    def can_try(batches: int, changes: tuple[Repair, ...]) -> bool:
        return len(replay.tapes) >= batches and all(change.seam in OFFERED for change in changes)

    def train(request: Train) -> ShortRun:
        return short_runs.train(replay, request)

    return Trials(train, can_try, replay.step_seconds, until)
