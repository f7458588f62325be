"""Faults that the close look finds are mended in further runs of the script: each shows what its repair is worth, and what lies behind."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks.test_looked import server
from trainwright.core import Finding, Outcome, Severity
from trainwright.judging.looks import judge_looks
from trainwright.judging.repaired import JudgedRun, judge_repaired
from trainwright.look.asking import Wanted
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record

__all__ = ["server"]

SCRIPT = """
import torch
from torch import nn
from engines import Engine

torch.manual_seed(0)
X = torch.randn(256, 8)
y = (X[:, 0] + X[:, 1] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x):
        hidden = torch.relu(self.hidden(x))
        return ANSWER


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train_step(engine, batch):
    x, y = batch
    CLEAR
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


losses = []
Engine(train_step).run(loader, 4)
print("first:", losses[0])
print("last:", losses[-1])
"""
SOUND = {"WIDTH": "16", "ANSWER": "self.head(hidden)", "CLEAR": "optimizer.zero_grad()"}
FAULTS = {
    "layer-size-mismatch": {"WIDTH": "12"},
    "severed-graph": {"ANSWER": "self.head(hidden.detach())"},
    "double-activation": {"ANSWER": "torch.softmax(self.head(hidden), -1)"},
    "uncleared-gradients": {"CLEAR": "pass"},
}


def write(*faults: str) -> str:
    text = SCRIPT
    for name, value in {**SOUND, **{k: v for fault in faults for k, v in FAULTS[fault].items()}}.items():
        text = text.replace(name, value)
    return text


def judge(text: str, folder: Path, server: Server) -> tuple[list[Finding], list[Record]]:
    """What is found in the script, and the records of its runs."""
    (folder / "train.py").write_text(text, encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=folder, server=server) as rehearsal:
        records = [rehearsal.wait()]

        def run_again(wanted: Sequence[Wanted]) -> Record:
            rehearsal.start_again(repairs=wanted)
            records.append(rehearsal.wait())
            return records[-1]

        found, failed, _ = judge_repaired(records[0].looks, JudgedRun(records[0]), run_again)
    assert not failed
    assert not any(record.watcher_errors for record in records), records[-1].watcher_errors
    return [one for one in found if one.severity != Severity.NOTE], records


def is_proven(found: Finding) -> bool:
    """By a trial, or by the further run."""
    return isinstance(found.proof, Outcome) or (found.proof is not None and "a further run" in found.proof.fact)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_further_run_shows_what_a_repair_is_worth(fault: str, tmp_path: Path, server: Server) -> None:
    found, records = judge(write(fault), tmp_path, server)
    assert [one.name for one in found] == [fault]
    assert is_proven(found[0])
    assert len(records) == 2
    assert records[1].ended.failure is None


def test_what_lies_behind_a_fault_is_found_with_its_repair_in_force(tmp_path: Path, server: Server) -> None:
    names = ("layer-size-mismatch", "double-activation", "uncleared-gradients")
    found, records = judge(write(*names), tmp_path, server)
    assert [one.name for one in found] == list(names)
    assert [one.after_repair for one in found] == [names[:number] for number in range(3)]
    assert all(is_proven(one) for one in found)
    numbers = {number.name: number.value for number in records[-1].numbers}
    assert numbers["last"] < 0.75 * numbers["first"]


def test_a_sound_script_is_run_once(tmp_path: Path, server: Server) -> None:
    found, records = judge(write(), tmp_path, server)
    assert not found
    assert len(records) == 1


def test_a_repair_that_changes_nothing_proves_nothing(tmp_path: Path, server: Server) -> None:
    (tmp_path / "train.py").write_text(write("double-activation"), encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=tmp_path, server=server) as rehearsal:
        record = rehearsal.wait()
    found = judge_repaired(record.looks, JudgedRun(record), lambda wanted: record).findings
    without = judge_repaired(record.looks, JudgedRun(record), None).findings
    assert [(one.name, one.proof) for one in found] == [(one.name, one.proof) for one in without]


def test_a_trainers_collator_is_changed_before_it_trains(server: Server) -> None:
    script = Path(__file__).parents[1] / "rules" / "batch" / "mismatched_mask" / "bad.py"
    with Rehearsal(script.name, seconds=5, folder=script.parent, server=server) as rehearsal:
        (look,) = rehearsal.wait().looks
        (fault,) = [one for one in judge_looks([look])[0] if one.severity != Severity.NOTE]
        assert fault.name == "mismatched-mask" and fault.repair is not None
        does = fault.repair.does
        rehearsal.start_again(repairs=[Wanted(rule=fault.name, does=does, looked=look)])
        (again,) = rehearsal.wait().looks
    assert again.repaired == (does,)
    assert [one for one in judge_looks([again])[0] if one.severity != Severity.NOTE] == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_came_of_a_fault_is_left_out_unless_the_run_was_cut_earlier(is_cut: bool, server: Server) -> None:
    script = Path(__file__).parents[1] / "rules" / "forward" / "one_unit_softmax" / "bad.py"
    with Rehearsal(script.name, seconds=5, folder=script.parent, server=server) as rehearsal:
        record = rehearsal.wait()

        def run_again(wanted: Sequence[Wanted]) -> Record:
            rehearsal.start_again(repairs=wanted)
            again = rehearsal.wait()
            return replace(again, updates=record.updates - 1) if is_cut else replace(again, updates=record.updates)

        found = judge_repaired(record.looks, JudgedRun(record), run_again).findings
    names = [one.name for one in found if one.severity != Severity.NOTE]
    assert names == ["one-unit-softmax", *(["constant-output", "constant-loss"] if is_cut else [])]
