"""Trainings that cannot be checked: what a rule says only of a trial is proven by their first steps, made again behind the run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checks.test_looked import BODIES, DISTURBABLE, HEAD, SOUND, run, server
from trainwright.core import Finding, Outcome, Severity
from trainwright.judging.looks import judge_looks
from trainwright.rehearsal.process import Server
from trainwright.stages import OverfitFacts

__all__ = ["server"]

LOOPS = [how for how in BODIES if how != "a second training"]
SOUND_TEXT = HEAD.replace("{answer}", SOUND)
# A rate at which the loss of one batch rises, one at which no planned update is felt, and units that all stand still.
TOO_HIGH, TOO_LOW = ("lr=0.01", "lr=30.0"), ("lr=0.01", "lr=1e-7")
DEAD = ("nn.Linear(16, 2))", "nn.Linear(16, 2))\n        nn.init.constant_(self.layers[0].bias, -40.0)")
# A second optimizer of a part of the model, and a loss that Python makes of a number that it has read.
TWO_OPTIMIZERS = """
model = Classifier()
one = torch.optim.Adam(model.layers[0].parameters(), lr=30.0)
other = torch.optim.Adam(model.layers[2].parameters(), lr=30.0)
for _ in range(4):
    for x, y in loader:
        one.zero_grad()
        other.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        one.step()
        other.step()
"""
OWN_ARITHMETIC = """
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=30.0)
rounds = 0
for _ in range(4):
    for x, y in loader:
        rounds += 1
        model.scale = float(rounds)
        optimizer.zero_grad()
        (nn.functional.cross_entropy(model(x), y) / float(model.layers[0].weight.detach().abs().mean())).backward()
        for parameter in model.parameters():
            parameter.grad *= 1 + rounds % 3
        optimizer.step()
"""


def find_loud(text: str, folder: Path, server: Server) -> list[Finding]:
    found, failed = judge_looks(run(text, folder, server).looks)
    assert not failed
    return [one for one in found if one.severity != Severity.NOTE]


def assert_named(text: str, name: str, marked: str, folder: Path, server: Server) -> None:
    (found,) = find_loud(text, folder, server)
    assert found.name == name
    assert found.where is not None
    assert marked in text.split("\n")[found.where.line - 1]
    assert isinstance(found.proof, Outcome)
    assert found.proof.seeds == 3
    assert found.proof.clearly_better or found.proof.learns_alone


@pytest.mark.parametrize("how", LOOPS)
def test_a_rate_far_too_high_is_proven(how: str, tmp_path: Path, server: Server) -> None:
    if TOO_HIGH[0] not in BODIES[how]:  # the estimator of a package writes its rate
        pytest.skip("its rate is the package's")
    marked = "net.fit" if how == "skorch" else "lr="  # the rate reaches skorch's optimizer from there
    assert_named(SOUND_TEXT + BODIES[how].replace(*TOO_HIGH), "excessive-learning-rate", marked, tmp_path, server)


@pytest.mark.parametrize("how", ["a package's own loop", "Ignite"])
def test_a_rate_far_too_low_is_proven(how: str, tmp_path: Path, server: Server) -> None:
    assert_named(SOUND_TEXT + BODIES[how].replace(*TOO_LOW), "negligible-learning-rate", "lr=", tmp_path, server)


@pytest.mark.parametrize("how", ["an engine that calls the script's step", "skorch"])
def test_units_that_never_answer_are_proven(how: str, tmp_path: Path, server: Server) -> None:
    assert_named(SOUND_TEXT.replace(*DEAD) + BODIES[how], "dead-units", "", tmp_path, server)


@pytest.mark.parametrize("body", [TWO_OPTIMIZERS, OWN_ARITHMETIC])
def test_nothing_is_proven_of_a_step_that_cannot_be_made_again(body: str, tmp_path: Path, server: Server) -> None:
    record = run(SOUND_TEXT + body, tmp_path, server)
    assert record.looks
    assert not any(look.outcomes for look in record.looks)
    assert not [one for one in judge_looks(record.looks)[0] if isinstance(one.proof, Outcome)]


def test_trials_are_made_behind_the_scripts_end(tmp_path: Path, server: Server) -> None:
    text = DISTURBABLE.replace(" / 2\n", "\n").replace("if number % 2:", "if True:").replace("lr=0.01", "lr=30.0")
    text += "import atexit\natexit.register(lambda: open('left.txt', 'w').write('ended'))\n"
    record = run(text, tmp_path, server)
    assert any(OverfitFacts in look.facts for look in record.looks)
    alone = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    seen = {number.name: number.value for number in record.numbers}
    assert seen == {line.split(":")[0]: float(line.split(":")[1]) for line in alone.stdout.splitlines()}
