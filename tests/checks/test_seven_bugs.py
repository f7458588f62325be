"""Seven common bugs of Trainer scripts, each the first cause at its line, on a new DistilBERT and on MiniLM.

One healthy script, two models; a bug is one piece of it written differently.
"""

from pathlib import Path

import pytest

from checks import check_script, loud, said

pytestmark = pytest.mark.slow

SCRIPT = """\
import numpy as np
import pandas as pd
from datasets import Dataset, DatasetDict
from material import MINILM, QUIET, tokenizer, tweets
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

set_seed(0)
frame = tweets(1500)
frame["label"] = frame["label"].to_numpy()
raw = DatasetDict(train=Dataset.from_pandas(frame[:1200]), test=Dataset.from_pandas(frame[1200:].reset_index(drop=True)))
reader = tokenizer()
tokens = raw.map(lambda rows: reader(rows["text"], truncation=True, max_length=48), batched=True)


def build(num_labels):
    MODEL


model = build(num_labels=3)
head = [p for n, p in model.named_parameters() if "classifier" in n]


def metrics(prediction):
    classes = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((classes == prediction.label_ids).mean())}


args = TrainingArguments(
    **QUIET,
    eval_strategy="epoch",
    learning_rate=RATE,
    per_device_train_batch_size=16,
    num_train_epochs=2,
)
trainer = Trainer(
    model,
    args,
    train_dataset=tokens["train"],
    eval_dataset=tokens["test"],
    data_collator=DataCollatorWithPadding(reader),
    compute_metrics=metrics,
)
trainer.train()
"""

MODELS = {
    "distilbert": (
        (
            "return DistilBertForSequenceClassification(\n"
            "        DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=num_labels)\n    )"
        ),
        "1e-3",
    ),
    "minilm": ("return AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=num_labels)", "5e-5"),
}
# What is written, what the bug writes instead, the rule, and text on the line that the finding must name.
BUGS = {
    "raw texts": (
        'train_dataset=tokens["train"]',
        'train_dataset=raw["train"]',
        "untokenized-dataset",
        'raw["train"],',
    ),
    "no padding": (
        "data_collator=DataCollatorWithPadding(reader)",
        "data_collator=default_data_collator",
        "ragged-batch",
        "data_collator=",
    ),
    "two outputs for three labels": ("num_labels=3", "num_labels=2", "label-out-of-range", "MODEL"),
    "metrics on logits": (
        "classes = np.argmax(prediction.predictions, axis=-1)",
        "classes = prediction.predictions",
        "metrics-on-logits",
        "classes == prediction",
    ),
    "rate of 0.1": ("learning_rate=RATE", "learning_rate=1e-1", "excessive-learning-rate", "learning_rate="),
    "labels shuffled": (
        'frame["label"] = frame["label"].to_numpy()',
        'frame["label"] = frame["label"].sample(frac=1, random_state=3).to_numpy()',
        "misaligned-labels",
        "train_dataset=",
    ),
    "all but one layer frozen": (
        "head = [p",
        (
            "for name, parameter in model.named_parameters():\n"
            '    parameter.requires_grad = "layer.1.attention" in name\nhead = [p'
        ),
        "frozen-untrained-layers",
        "requires_grad =",
    ),
}


# One check of MiniLM is among the quick tests, that of test_examples.py.
EACH_MODEL = [pytest.param(m, marks=[pytest.mark.slow] if m == "minilm" else [], id=m) for m in MODELS]


def _script(folder: Path, model: str, bug: str | None) -> Path:
    text = SCRIPT
    if bug is not None:
        old, new = BUGS[bug][:2]
        assert text.count(old) == 1
        text = text.replace(old, new)
    build, rate = MODELS[model]
    file = folder / "train.py"
    file.write_text(text.replace("MODEL", build).replace("RATE", rate))
    return file


# test_examples.py finds most of these in one script.
QUICK = ("labels shuffled", "all but one layer frozen")
EACH_BUG = [pytest.param(b, marks=() if b in QUICK else pytest.mark.slow, id=b) for b in BUGS]


@pytest.mark.parametrize("model", EACH_MODEL)
@pytest.mark.parametrize("bug", EACH_BUG)
def test_the_bug_is_the_first_cause_at_its_line(bug: str, model: str, tmp_path: Path) -> None:
    script = _script(tmp_path, model, bug)
    report = check_script(script)
    first = report.first_cause
    assert first is not None, said(report)
    assert first.name == BUGS[bug][2], said(report)
    # Where the model is made, or where the number that its maker passes on is written.
    wanted = (MODELS[model][0].split("(")[0], BUGS[bug][1]) if BUGS[bug][3] == "MODEL" else (BUGS[bug][3],)
    assert first.where is not None, said(report)
    line = script.read_text().split("\n")[first.where.line - 1]
    assert any(text in line for text in wanted), said(report)
    assert first.fix is not None, said(report)


@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_script_without_a_bug_is_silent(model: str, tmp_path: Path) -> None:
    report = check_script(_script(tmp_path, model, None))
    assert not loud(report), said(report)
    assert not report.faulty, said(report)
