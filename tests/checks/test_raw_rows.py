"""The profile of whole scripts: what they hold before they prepare it, beside what their model receives."""

from pathlib import Path

import pytest

from trainwright.core.sheet import Row
from trainwright.rehearsal.process import Rehearsal
from trainwright.review.sheet import sheet_of

TABLE = """
import numpy as np
import pandas as pd
import torch

torch.manual_seed(0)
rng = np.random.default_rng(0)
frame = pd.DataFrame({"id": rng.permutation(1200), "age": rng.normal(40, 9, 1200), "visits": rng.normal(5, 2, 1200),
                      "plan": rng.choice(["basic", "plus", "team"], 1200)})
frame["left"] = ((frame.plan == "basic") ^ (rng.random(1200) < 0.08)).astype(int)
frame["state"] = np.where(frame.left == 1, "left", "stays")
columns = COLUMNS
x = torch.tensor(pd.get_dummies(columns).to_numpy(dtype="float32"))
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(frame.left.to_numpy())
rows = torch.utils.data.TensorDataset(x, y)
loader = torch.utils.data.DataLoader(rows, batch_size=50, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for epoch in range(8):
    for a, b in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
"""
TEXTS = """
import datasets
import numpy as np
import torch
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
rng = np.random.default_rng(0)
GOOD, BAD = ["splendid", "wonderful", "charming"], ["dreadful", "boring", "clumsy"]
FILLER = ["the", "film", "with", "story", "about", "river", "night", "again", "house", "music"]
WORDS = {word: number for number, word in enumerate(["<pad>", "<unk>", *VOCABULARY])}


def write(label):
    return " ".join([*rng.choice(FILLER, 7), rng.choice(GOOD if label else BAD), *rng.choice(FILLER, 4)])


labels = rng.integers(0, 2, 900).tolist()
shown = [label if rng.random() < 0.93 else 1 - label for label in labels]
rows = datasets.Dataset.from_dict({"text": [write(label) for label in shown], "labels": labels})
rows = rows.map(lambda row: {"tokens": [WORDS.get(word, 1) for word in row["text"].split()]})


class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.head = torch.nn.EmbeddingBag(len(WORDS), 16), torch.nn.Linear(16, 2)

    def forward(self, tokens, labels=None):
        scores = self.head(self.bag(tokens))
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


arguments = TrainingArguments(output_dir="out", num_train_epochs=8, per_device_train_batch_size=30, learning_rate=2e-2,
                              report_to=[], disable_tqdm=True, use_cpu=True, save_strategy="no")
Trainer(model=Bag(), args=arguments, train_dataset=rows).train()
"""


def profile_of(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Row, ...]:
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(text, encoding="utf-8")
    with Rehearsal("train.py", seconds=60) as rehearsal:
        record = rehearsal.wait()
    assert record.ended.failure is None and not record.watcher_errors and record.raw
    return sheet_of(record).profile


def test_a_column_that_is_left_out_is_named_and_not_one_that_repeats_the_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = profile_of(tmp_path, monkeypatch, TABLE.replace("COLUMNS", 'frame[["age", "visits"]]'))
    assert row.mark == "the raw row tells more: plan" and row.carriers == ("plan",)
    assert {"left", "state"} <= set(row.not_counted)
    assert row.raw > 0.85 > 0.75 > max(row.received, row.model)


def test_a_table_whose_columns_all_arrive_has_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile_of(tmp_path, monkeypatch, TABLE.replace("COLUMNS", 'frame[["age", "visits", "plan"]]'))
    assert not any(row.mark for row in found)


def test_a_text_of_which_the_tokens_tell_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = profile_of(tmp_path, monkeypatch, TEXTS.replace("VOCABULARY", "FILLER"))
    assert row.mark == "the raw row tells more: text" and row.not_counted == ("labels",)
    assert row.raw > 0.85 > 0.65 > row.received


def test_a_text_whose_words_are_all_known_has_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile_of(tmp_path, monkeypatch, TEXTS.replace("VOCABULARY", "FILLER, *GOOD, *BAD"))
    assert not any(row.mark for row in found)
