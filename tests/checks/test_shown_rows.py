"""Rows as a script's model received them, from its own run or a check: text, tokens of a language model, pictures, a table."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import trainwright
from checks import check_script
from trainwright.core import Report
from trainwright.core.sample import MASKED, PADDING, SPECIAL
from trainwright.core.sheet import Sheet
from trainwright.rehearsal.process import Rehearsal
from trainwright.report import html
from trainwright.review.sheet import sheet_of

TOKENIZER = """
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

def build():
    words = ["[PAD]", "[CLS]", "[UNK]", "good", "bad", "film", "a", "very", "the", "end"]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", cls_token="[CLS]", unk_token="[UNK]")
"""
TEXT = (
    TOKENIZER
    + """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

def main():
    tokenizer = build()
    texts = ["a very good film", "a bad film", "the very good end of it", "bad end"] * 16
    rows = [{**tokenizer(text), "labels": int("good" in text)} for text in texts]
    config = BertConfig(vocab_size=10, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                        id2label={0: "negative", 1: "positive"}, label2id={"negative": 0, "positive": 1})
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=8, report_to="none", use_cpu=True),
        train_dataset=rows, eval_dataset=rows[:40], processing_class=tokenizer,
    )
    trainer.train()
    trainer.evaluate()

main()
"""
)
LANGUAGE = (
    TOKENIZER
    + """
import torch
from transformers import GPT2Config, GPT2LMHeadModel

tokenizer = build()
ids = torch.tensor([tokenizer(text)["input_ids"] for text in ["a very good film the end", "the very bad film the end"] * 16])
labels = ids.clone()
labels[:, :3] = -100  # a prompt
model = GPT2LMHeadModel(GPT2Config(vocab_size=10, n_embd=16, n_layer=1, n_head=2, n_positions=16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(30):
    loss = model(input_ids=ids, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
PICTURES = """
import torch
from torch.utils.data import DataLoader, Dataset

class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, picture):
        return (picture - self.mean) / self.std

class Squares(Dataset):
    classes = None

    def __init__(self, transform):
        self.transform, self.classes = transform, ["dark", "light"]

    def __len__(self):
        return 64

    def __getitem__(self, row):
        return self.transform(torch.full((1, 12, 12), 0.2 + 0.6 * (row % 2))), row % 2

loader = DataLoader(Squares(Normalize(0.5, 0.25)), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for pictures, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
"""
TABLE = """
import keras
import numpy as np

feature_names = ["age", "income", "debt"]
x = np.random.default_rng(0).normal(size=(200, 3)).astype("float32")
y = (x[:, 0] > 0).astype("int64")
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, y, validation_data=(x[:50], y[:50]), epochs=2, verbose=0)
"""


def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, samples: bool = True) -> Sheet:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(text, encoding="utf-8")
    with Rehearsal("train.py", seconds=30.0, samples=samples) as rehearsal:
        record = rehearsal.wait()
    assert record.ended.failure is None and not record.watcher_errors
    return sheet_of(record)


def test_text_is_read_by_the_tokenizer_of_the_script(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, TEXT)
    spans = [span for one in found.samples for part in one.inputs for span in part.spans]
    assert "[CLS]" in {span.text.strip() for span in spans if span.kind == SPECIAL}
    assert any(span.kind == PADDING for span in spans) and any("very good film" in span.text for span in spans)
    assert {one.label for one in found.samples} <= {"0 (negative)", "1 (positive)"}
    assert all(one.probability is not None and one.loss is not None for one in found.samples)


def test_what_a_language_models_loss_does_not_count_is_grey(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, LANGUAGE)
    one = found.samples[0]
    assert [span.kind for span in one.inputs[0].spans] == [SPECIAL, MASKED, ""]
    assert [span.text.strip() for span in one.inputs[0].spans][1:] in (
        ["a very", "good film the end"],
        ["the very", "bad film the end"],
    )
    assert '<span class="masked">' in html.render(Report(script="train.py", sheet=found))


def test_a_language_model_continues_a_few_rows(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, LANGUAGE.replace("range(30)", "range(60)"))
    texts = {one.prompt.strip(): one for one in found.generated}
    assert set(texts) == {"[CLS] a very", "[CLS] the very"}
    good = texts["[CLS] a very"]
    assert good.expected == "good film the end" and good.text.startswith("good film the end")
    assert (good.rows_of, good.update) == ("training", 60)
    assert "<mark>good film the end" in html.render(Report(script="train.py", sheet=found))


def test_pictures_are_pictures_and_classes_have_names(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, PICTURES)
    parts = [part for one in found.samples for part in one.inputs]
    assert parts and all(part.picture.startswith("data:image/png;base64,") for part in parts)
    assert {part.note for part in parts} == {"1×12×12, normalization undone"}
    assert {one.label for one in found.samples} <= {"0 (dark)", "1 (light)"} and found.classes[0].label.endswith(")")


def test_columns_of_a_table_have_their_names(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, TABLE)
    assert {part.names for one in found.samples for part in one.inputs} == {("age", "income", "debt")}
    assert {one.right for one in found.samples} <= {True, False}


def test_no_row_is_kept_where_none_may_be_shown(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, LANGUAGE, samples=False)
    assert found.updates == 30 and found.samples == ()


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, **options: object) -> Report:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(text, encoding="utf-8")
    return check_script(Path("train.py"), device="cpu", **options)


def test_what_a_language_models_loss_does_not_count_is_shown(tmp_path, monkeypatch) -> None:
    report = checked(tmp_path, monkeypatch, LANGUAGE)
    assert report.sheet is not None
    assert {span.kind for span in report.sheet.samples[0].inputs[0].spans} == {SPECIAL, MASKED, ""}


@pytest.mark.parametrize(
    ("samples", "setting", "shown"), [(True, "true", True), (True, "false", False), (False, "true", False)]
)
def test_a_check_of_objects_shows_rows(tmp_path, monkeypatch, samples: bool, setting: str, shown: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.trainwright]\nsamples = {setting}\n", encoding="utf-8")
    torch.manual_seed(0)
    feature_names = ["age", "income", "debt"]
    x = torch.randn(96, 3)
    data, model = TensorDataset(x, (x[:, 0] > 0).long()), torch.nn.Linear(3, 2)
    given = {"model": model, "loader": DataLoader(data, 16), "optimizer": torch.optim.SGD(model.parameters(), 0.1)}
    source = compile("report = check(**given)", str(tmp_path / "cell.py"), "exec")
    (tmp_path / "cell.py").write_text("report = check(**given)", encoding="utf-8")
    names = {"check": trainwright.check, "given": {**given, "loss": torch.nn.CrossEntropyLoss(), "budget": 5.0, "samples": samples},
             "feature_names": feature_names}  # fmt: skip
    exec(source, names)
    samples = names["report"].sheet.samples
    assert bool(samples) is shown
    assert not shown or samples[0].inputs[0].names == ("age", "income", "debt")


CHARACTERS = """
import torch
from torch import nn
from torch.nn import functional as F

text = "the cat sat on the mat and the dog sat on the log " * 20
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
codes = torch.tensor([stoi[c] for c in text])

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.cells, self.head = nn.Embedding(len(chars), 32), nn.GRU(32, 64, batch_first=True), nn.Linear(64, len(chars))

    def forward(self, tokens, targets=None):
        scores = self.head(self.cells(self.table(tokens))[0])
        return scores, None if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def generate(self, tokens, max_new_tokens, temperature=1.0, top_k=None):
        assert BROKEN is False
        for _ in range(max_new_tokens):
            scores = self(tokens)[0][:, -1] / temperature
            least = torch.topk(scores, top_k or len(chars))[0][:, [-1]]
            drawn = torch.multinomial(torch.softmax(scores.masked_fill(scores < least, float("-inf")), -1), 1)
            tokens = torch.cat([tokens, drawn], 1)
        return tokens

def main():
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(120):
        starts = torch.randint(len(codes) - 33, (16,))
        x, y = (torch.stack([codes[s + shift : s + shift + 32] for s in starts.tolist()]) for shift in (0, 1))
        loss = model(x, y)[1]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

BROKEN = False
main()
"""
TWO_PARTS = (
    TOKENIZER
    + """
import torch
from transformers import T5Config, T5ForConditionalGeneration

def main():
    tokenizer = build()
    pairs = [("a very good film", "good end"), ("the bad film", "bad end")] * 16
    ids = tokenizer([a for a, _ in pairs], padding=True, return_tensors="pt", return_token_type_ids=False)
    labels = tokenizer([b for _, b in pairs], padding=True, return_tensors="pt")["input_ids"][:, 1:].contiguous()
    model = T5ForConditionalGeneration(T5Config(vocab_size=10, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                                                dropout_rate=0.0, decoder_start_token_id=0, eos_token_id=9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(60):
        loss = model(**ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

main()
"""
)


def test_a_models_own_generation_is_asked_for_the_likeliest(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, CHARACTERS)
    assert len(found.generated) == 3 and all(len(one.prompt) == 16 and len(one.text) == 20 for one in found.generated)
    assert sum(one.expected.startswith(one.text[:6]) for one in found.generated) >= 2


def test_a_generation_that_raises_is_left_out(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, CHARACTERS.replace("BROKEN = False", "BROKEN = True"))
    assert found.updates == 120 and found.samples and found.generated == ()


def test_an_encoders_rows_are_answered_in_full(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, TWO_PARTS)
    texts = {one.prompt.strip(): one for one in found.generated}
    assert {name: one.expected for name, one in texts.items()} == {
        "[CLS] a very good film": "good end",
        "[CLS] the bad film": "bad end",
    }
    assert all(one.text.strip() == one.expected for one in texts.values())


SEVERAL_LABELS = """
import keras
import numpy as np

classes = ["sunny", "windy", "wet"]
draw = np.random.default_rng(0)
x = draw.normal(size=(200, 3)).astype("float32")
y = (x > 0.3).astype("float32")
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="sigmoid")])
model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy")
model.fit(x, y, validation_data=(x[:50], y[:50]), epochs=5, verbose=0)
"""
TAGS = """
import keras
import numpy as np

vocabulary = ["", "anna", "lives", "in", "bonn", "and", "likes", "tea", "ben", "paris", "sees", "rome"]
tag_classes = ["other", "person", "place"]
sentences = [[1, 2, 3, 4, 0, 0], [8, 10, 9, 5, 11, 0], [1, 6, 7, 0, 0, 0], [8, 2, 3, 11, 0, 0]] * 16
kinds = {1: 1, 8: 1, 4: 2, 9: 2, 11: 2}
x = np.array(sentences)
y = np.array([[kinds.get(token, 0) for token in one] for one in sentences])
model = keras.Sequential([keras.layers.Embedding(12, 8, mask_zero=True), keras.layers.Dense(3, activation="softmax")])
model.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
model.fit(x, y, validation_data=(x[:16], y[:16]), epochs=8, verbose=0)
"""


def test_several_labels_of_a_row_are_told_by_name_with_their_probabilities(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, SEVERAL_LABELS)
    one = max(found.samples, key=lambda row: row.answer.count("%"))
    assert one.label in ("sunny + windy + wet", "sunny + windy", "sunny + wet", "windy + wet")
    assert re.fullmatch(r"(\w+ \d+% \+ )*\w+ \d+%", one.answer) and one.right is not None


def test_tags_stand_beside_their_words(tmp_path, monkeypatch) -> None:
    found = sheet(tmp_path, monkeypatch, TAGS)
    texts = {"".join(span.text for span in one.target): one for one in found.samples}
    assert "anna person  lives other  in other  bonn place  " in texts
    assert all(re.fullmatch(r"\d of \d labels right", one.answer) for one in found.samples)
    assert any(span.kind == PADDING for span in found.samples[0].inputs[0].spans)
