"""Which loops around an update make up its training."""

import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.seams.loops.shortened_loop import loops_of_training

FORMS = {
    "a loop of epochs and batches": ("""
optimizer = Optimizer()
for epoch in epochs:
    for batch in batches:
        optimizer.step()
""", ["batch", "epoch"]),
    "a training for each rate": ("""
for rate in rates:
    optimizer = Optimizer()
    for epoch in epochs:
        optimizer.step()
""", ["epoch"]),
    "two optimizers in turn": ("""
pair = Optimizer(), Optimizer()
for epoch in epochs:
    for one in pair:
        one.step()
""", ["epoch"]),
    "an agent's own update": ("""
class Agent:
    def __init__(self):
        self.optimizer = Optimizer()

    def learn(self):
        for part in parts:
            self.optimizer.step()

agent = Agent()
for episode in episodes:
    agent.learn()
""", ["part", "episode"]),
    "a function that is called for each fold": ("""
def fit():
    optimizer = Optimizer()
    for epoch in epochs:
        update(optimizer)

def update(optimizer):
    optimizer.step()

for fold in folds:
    fit()
""", ["epoch"]),
}  # fmt: skip


@pytest.mark.parametrize(("script", "targets"), FORMS.values(), ids=FORMS)
def test_the_rounds_of_a_loop_that_makes_the_optimizer_anew_are_trainings_of_their_own(
    script: str, targets: list[str], tmp_path: Path
) -> None:
    found: list[list[Any]] = []

    class Optimizer:
        param_groups: tuple[Any, ...] = ()

        def step(self) -> None:
            loops = loops_of_training(sys._getframe(1))
            found.append([one.node.target.id for one in loops])

    several = ("epochs", "batches", "rates", "parts", "episodes", "folds")
    path = tmp_path / "train.py"
    path.write_text(script)
    exec(compile(script, str(path), "exec"), {"Optimizer": Optimizer, **dict.fromkeys(several, range(1))})
    assert found[0] == targets
