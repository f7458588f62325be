"""The sets of a training are read behind its run: the rules on data speak of what the run alone has shown."""

import re
from pathlib import Path

import pytest

from tests.checks.test_looked import server
from trainwright.core import Severity
from trainwright.judging.looks import judge_looks
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record
from trainwright.stages import DatasetFacts
from twins import find_scripts, write_script

__all__ = ["server"]
RULES = Path(__file__).parents[1] / "rules"
# A bad script, and its good twin, by what they show; those that no check lifts are tests of their rules.
SCRIPTS = {
    "rows and labels in another order": "dataset/misaligned_labels/bad_table",
    "rows mixed in the step": "dataset/misaligned_labels/bad_in_step",
    "labels that the step makes coarser": "dataset/destroyed_labels/bad_cast_in_step",
    "a row that raises": "dataset/failing_rows/bad_loop",
    "rows in both loaders' sets": "dataset/train_eval_overlap/bad_oversampled",
    "arrays that are cut in order": "dataset/sorted_without_shuffle/bad_slices",
    "arrays that are evaluated without a loader": "dataset/train_eval_overlap/bad_arrays",
    "a Trainer's set": "dataset/missing_classes/bad",
    "a set that a Trainer cannot collate": "dataset/string_labels/bad_torch",
    "weights of the classes": "loss/misassigned_class_weights/bad_sampler",
    "labels of a Trainer's batches": "batch/all_labels_masked/bad",
}
# A set whose rows are spent, changed, or cannot be read once the script is over; what the labels were is torn in it.
LEFT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

torch.manual_seed(0)
X = torch.randn(400, 8)
y = (X[:, 0] + X[:, 1] > 0).long()


class Rows(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row], y[row]


class Stream(IterableDataset):
    def __init__(self):
        self.rows = iter([(X[i], y[i]) for i in range(400)] * 3)

    def __iter__(self):
        for _, row in zip(range(400), self.rows):
            yield row


loader = DataLoader({data}, batch_size=40)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for x, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
{then}
"""


def run(path: Path, server: Server) -> Record:
    with Rehearsal(path.name, seconds=30, folder=path.parent, server=server) as rehearsal:
        record = rehearsal.wait()
    assert not record.watcher_errors, record.watcher_errors
    return record


@pytest.mark.parametrize(
    "script", [pytest.param(s, id=i, marks=pytest.mark.slow if "Trainer" in i else ()) for i, s in SCRIPTS.items()]
)
def test_a_fault_of_the_data_is_named_and_its_twin_is_not(script: str, server: Server) -> None:
    bad = RULES / f"{script}.py"
    expected = re.findall(r"# expect: ([a-z-]+)", bad.read_text("utf-8"))
    found, failed = judge_looks(run(bad, server).looks)
    assert not failed
    assert {one.name for one in found if one.severity != Severity.NOTE} == {*expected}
    good = bad.with_name(bad.name.replace("bad", "good"))
    if find_scripts(good.parent, good.name):
        found, failed = judge_looks(run(write_script(good), server).looks)
        assert ([one for one in found if one.severity != Severity.NOTE], failed) == ([], [])


@pytest.mark.parametrize(
    ("data", "then"),
    [
        ("Stream()", ""),
        ("Rows()", "y = y[torch.randperm(400)]"),
        ("Rows()", "del X"),
        ("Rows()", "Rows.__len__ = lambda self: 0"),
    ],
    ids=["spent", "other labels now", "gone", "empty now"],
)
def test_nothing_is_said_of_what_is_left_of_a_set(data: str, then: str, tmp_path: Path, server: Server) -> None:
    (tmp_path / "train.py").write_text(LEFT.replace("{data}", data).replace("{then}", then), encoding="utf-8")
    (look,) = run(tmp_path / "train.py", server).looks
    dataset = look.facts[DatasetFacts]
    assert isinstance(dataset, DatasetFacts)
    assert dataset.train.kind == "none"
    assert judge_looks([look]) == ([], [])
