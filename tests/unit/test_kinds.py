"""The kinds of training: one interface, of which each kind changes what it knows better."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from trainwright.frameworks.packages import TrainingKind
from trainwright.look.kinds import kind_of
from trainwright.look.of_loop import LoopTraining

TRAINER = SimpleNamespace(optimizer=None, lr_scheduler=object(), estimated_stepping_batches=12.0)


@pytest.mark.parametrize("name", [TrainingKind.LOOP, TrainingKind.LIGHTNING, TrainingKind.TRAINER])
def test_a_kind_has_the_interface_of_a_loop_and_nothing_beside_it(name: TrainingKind) -> None:
    kind = kind_of(name, TRAINER, sys._getframe())
    assert isinstance(kind, LoopTraining)
    assert {n for n in dir(type(kind)) if not n.startswith("_")} == {n for n in dir(LoopTraining) if n[0] != "_"}


def test_a_kind_knows_who_made_the_optimizer_and_the_schedule() -> None:
    made = [
        kind_of(name, TRAINER, sys._getframe())
        for name in (TrainingKind.LOOP, TrainingKind.LIGHTNING, TrainingKind.TRAINER)
    ]
    assert [(kind.had_optimizer, kind.had_schedule) for kind in made] == [(True, True), (True, True), (False, True)]


@pytest.mark.parametrize(("steps", "planned"), [(12.0, 12), (float("inf"), None)])
def test_lightning_plans_its_updates_and_a_loop_none_before_its_end(steps: float, planned: int | None) -> None:
    kind = kind_of(TrainingKind.LIGHTNING, SimpleNamespace(estimated_stepping_batches=steps), sys._getframe())
    assert kind.count_planned(7, is_ended=False) == planned
    assert kind_of(TrainingKind.LOOP, None, sys._getframe()).count_planned(7, is_ended=True) == 7
