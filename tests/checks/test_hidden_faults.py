"""Faults that no reader of the source can see: they sit in the data or in the weights.

Each script is right, and silent on the files as they should be; the fault is in a file that it reads.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from checks import check_script, loud, said

pytestmark = pytest.mark.slow

TEXTS = """\
from pathlib import Path
import pandas as pd
from datasets import Dataset
from material import QUIET, tokenizer
from transformers import (
    DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed,
)

set_seed(0)
folder = Path(__file__).parent
reader = tokenizer()


def load(name):
    data = Dataset.from_pandas(pd.read_csv(folder / name))
    return data.map(lambda rows: reader(rows["text"], truncation=True, max_length=LIMIT), batched=True)


train, test = load("train.csv"), load("test.csv")
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=3)
trainer = Trainer(model, args, train_dataset=train, eval_dataset=test, data_collator=DataCollatorWithPadding(reader))
trainer.train()
"""

TABLE = """\
from pathlib import Path
import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
arrays = np.load(Path(__file__).parent / "table.npz")
train = Dataset.from_dict({"features": arrays["features"].tolist(), "labels": arrays["labels"].tolist()})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32, num_train_epochs=3)
trainer = Trainer(Net(), args, train_dataset=train)
trainer.train()
"""

SAVED = """\
from pathlib import Path
from datasets import load_from_disk
from material import QUIET, tokenizer
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
folder = Path(__file__).parent
train = load_from_disk(str(folder / "train"))
model = AutoModelForSequenceClassification.from_pretrained(folder / "checkpoint", num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=16, num_train_epochs=2)
trainer = Trainer(model, args, train_dataset=train, processing_class=tokenizer())
trainer.train()
"""


def _tweet_files(folder: Path, change: Callable | None = None, limit: int = 48) -> Path:
    from material import tweets

    train, test = (t.assign(text=t["text"].str.split().str.join(" ")) for t in (tweets(2000), tweets(300, start=2000)))
    if change is not None:
        train, test = change(train, test)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    (folder / "train.py").write_text(TEXTS.replace("LIMIT", str(limit)))
    return folder / "train.py"


def _shuffled(train, test):
    return train.assign(label=np.random.default_rng(1).permutation(train["label"])), test


def _constant(train, test):
    """What a left join on a key that matches nothing leaves behind, filled with 0."""
    return train.assign(sentiment=train["label"].map(["bad", "so so", "good"].__getitem__), label=0), test


def _unlabelled(train, test):
    return train.assign(label=train["label"].where(train.index % 20 > 0)), test


def _class_only_in_evaluation(train, test):
    return train[train["label"] != 2], test


def _repeated(train, test):
    import pandas as pd

    return pd.concat([train, test.head(200)], ignore_index=True), test


def _table(folder: Path, *, broken: bool) -> Path:
    random = np.random.default_rng(0)
    features = random.normal(size=(10_000, 12)).astype(np.float32)
    labels = features[:, :3].argmax(1)
    if broken:
        features[9_000, 4] = np.nan
    np.savez(folder / "table.npz", features=features, labels=labels)
    (folder / "train.py").write_text(TABLE)
    return folder / "train.py"


def _saved(folder: Path, *, foreign: bool = False, weights: Callable | None = None) -> Path:
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification

    from material import MINILM, tokenizer, tweets

    frame = tweets(800)
    reader = tokenizer()
    rows = [reader(t, truncation=True, max_length=48)["input_ids"] for t in frame["text"]]
    if foreign:  # another vocabulary of the same size: the ids mean other words
        order = np.random.default_rng(0).permutation(len(reader))
        rows = [order[r].tolist() for r in rows]
    data = Dataset.from_dict({"input_ids": rows, "label": frame["label"].tolist()})
    data.save_to_disk(str(folder / "train"))
    model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
    if weights is not None:
        weights(model)
    model.save_pretrained(folder / "checkpoint")
    (folder / "train.py").write_text(SAVED)
    return folder / "train.py"


def _not_a_number(model) -> None:
    model.bert.encoder.layer[3].output.dense.weight.data[5, :7] = float("nan")


def _first(script: Path, name: str, number: str = "") -> None:
    report = check_script(script, budget=300)
    first = report.first_cause
    assert first is not None, said(report)
    assert first.name == name, said(report)
    assert number in first.message, said(report)


def test_healthy_files_are_silent(tmp_path: Path) -> None:
    for make in (_tweet_files, lambda f: _table(f, broken=False), _saved):
        folder = tmp_path / getattr(make, "__name__", "table").replace("<lambda>", "table")
        folder.mkdir()
        report = check_script(make(folder))
        assert not loud(report), said(report)
        assert not report.faulty, said(report)


def test_labels_shuffled_in_a_csv(tmp_path: Path) -> None:
    _first(_tweet_files(tmp_path, _shuffled), "misaligned-labels")


def test_a_label_column_that_is_constant_after_a_join(tmp_path: Path) -> None:
    _first(_tweet_files(tmp_path, _constant), "destroyed-labels")


def test_rows_without_a_label(tmp_path: Path) -> None:
    """An empty cell of a CSV is None in the data set, and the collator's message blames padding."""
    _first(_tweet_files(tmp_path, _unlabelled), "non-finite-data", "100")


def test_a_class_that_only_the_evaluation_file_has(tmp_path: Path) -> None:
    _first(_tweet_files(tmp_path, _class_only_in_evaluation), "missing-classes", "2")


def test_evaluation_rows_repeated_in_training(tmp_path: Path) -> None:
    _first(_tweet_files(tmp_path, _repeated), "train-eval-overlap", "200")


def test_texts_that_the_limit_cuts_to_nothing(tmp_path: Path) -> None:
    _first(_tweet_files(tmp_path, limit=2), "garbled-text")


def test_a_nan_in_row_9000(tmp_path: Path) -> None:
    _first(_table(tmp_path, broken=True), "non-finite-data", "9000")


def test_token_ids_of_another_vocabulary_in_a_saved_data_set(tmp_path: Path) -> None:
    _first(_saved(tmp_path, foreign=True), "foreign-tokenizer")


def test_a_checkpoint_with_nan(tmp_path: Path) -> None:
    _first(_saved(tmp_path, weights=_not_a_number), "non-finite-activation", "7")


def test_a_checkpoint_with_untrained_layers_that_stay_frozen(tmp_path: Path) -> None:
    """The file lacks three layers, as after a save under other names; the script freezes the encoder."""
    from safetensors.torch import load_file, save_file

    script = _saved(tmp_path)
    file = tmp_path / "checkpoint" / "model.safetensors"
    kept = {k: v for k, v in load_file(file).items() if not any(f"layer.{n}." in k for n in (0, 1, 2))}
    save_file(kept, file, metadata={"format": "pt"})
    text = script.read_text().replace("args =", "model.bert.requires_grad_(False)\nargs =")
    script.write_text(text)
    _first(script, "frozen-untrained-layers")
