"""The kinds of training: one interface, of which each kind changes what it knows better."""

from __future__ import annotations

import sys
from types import SimpleNamespace as Namespace

import pytest

from trainwright.frameworks.packages import TrainingKind
from trainwright.look.kinds import kind_of
from trainwright.look.look import Looking
from trainwright.look.of_loop import LoopTraining
from trainwright.look.state import Look
from trainwright.look.training_facts import add_end
from trainwright.rehearsal.watch.torch.lightning import LightningNotes
from trainwright.rehearsal.watch.torch.trainer import Noting

TRAINER = Namespace(optimizer=None, lr_scheduler=object())


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


class Told:
    """A watch that a training's begin is told to."""

    def __init__(self) -> None:
        self.planned: list[int | None] = []
        recorder = Namespace(watching=lambda f: f)
        self.state = Namespace(recorder=recorder)

    def begin_managed(self, kind: TrainingKind, model: object, planned: int | None, where: object) -> None:
        self.planned.append(planned)


@pytest.mark.parametrize(
    ("steps", "automatic", "planned"),
    [(12.0, True, 7), (float("inf"), True, None), (-1, True, None), (12, False, None)],
)
def test_what_lightning_plans_is_what_a_resumed_training_has_before_it(
    steps: float, automatic: bool, planned: int | None
) -> None:
    trainer, module = (
        Namespace(estimated_stepping_batches=steps, global_step=5),
        Namespace(automatic_optimization=automatic),
    )
    LightningNotes(told := Told(), None).begin(trainer, module)  # type: ignore[arg-type]
    assert told.planned == [planned]


def test_what_a_trainer_plans_is_what_a_resumed_training_has_before_it() -> None:
    """Its setup spoke of all updates, the sheet of the rest, and its schedule was followed past its end."""
    state = Namespace(max_steps=80, global_step=60)
    trainer = Namespace(
        optimizer=None, lr_scheduler=None, state=state, args=Namespace(get_warmup_steps=lambda all: all // 8 * 7)
    )
    Noting(told := Told(), None).on_train_begin(None, state, None)  # type: ignore[arg-type]
    assert told.planned == [20]
    assert kind_of(TrainingKind.TRAINER, trainer, sys._getframe()).count_warmup(20) == 10


@pytest.mark.parametrize(("told", "is_ended", "planned"), [(20, False, 20), (None, False, None), (None, True, 7)])
def test_a_loop_plans_no_updates_before_its_end(told: int | None, is_ended: bool, planned: int | None) -> None:
    look, looking = Look(updates=7), Looking()
    looking.watched = Namespace(count_planned={1: told}.get)  # type: ignore[assignment]
    add_end(look, looking, is_ended=is_ended)
    assert look.planned_updates == planned
