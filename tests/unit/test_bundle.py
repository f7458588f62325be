"""`trainwright bundle`: what is left out, what a script is cut down to, made-up values, and whose fault it is."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainwright.bundle.blame import blame
from trainwright.bundle.page import MARK, page, without_data
from trainwright.bundle.redact import Redactor
from trainwright.bundle.reproduce import is_shown_again
from trainwright.bundle.source import list_needed, read_statements, smaller, text_of
from trainwright.bundle.values import expression, first_rows, outline
from trainwright.bundling import bundle_program
from trainwright.core import Failure, Finding, Place, Report, Severity
from trainwright.errors import UsageError
from trainwright.options import Options
from trainwright.start.program import Program


def redactor(folder: Path, **environment: str) -> Redactor:
    return Redactor(
        folder=folder, home=Path("/home/annalena"), environment=environment, user="annalena", host="gpu17.lab"
    )


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("open('/home/annalena/project/x.csv')", "annalena"),
        ("/home/annalena/project/data/x.csv", "project"),
        ("/scratch/jobs/secret_study/x.csv", "secret_study"),
        (r"C:\Users\annalena\x.csv", "Users"),
        ("user annalena on gpu17", "gpu17"),
        ("login(token='hf_abcdefghijklmnopqrst')", "hf_abc"),
        ("sk-proj-abcdefghijklmnop1234", "sk-proj"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_"),
        ("upload(x, 'hf_oauth_eyJhbGciOiJFZERTQSJ9.eyJhdWQi.c2ln')", "eyJ"),
        ("hf_jwt_" + "a1" * 20, "a1a1"),
        ("AKIAABCDEFGHIJKLMNOP", "AKIA"),
        ("wandb 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
        ("https://me:geheim99@example.org/x", "geheim99"),
        ("password = 'hunter22'", "hunter22"),
        ("mail annalena@example.org", "example.org"),
        ("it prints xyzzy-value-1", "xyzzy"),
        ("from the file plugh-value-2", "plugh"),
    ],
)
def test_what_is_private_is_left_out(tmp_path: Path, text: str, left_out: str) -> None:
    (tmp_path / ".env").write_text("# a remark\nDATABASE=plugh-value-2\n")
    assert left_out not in redactor(tmp_path, MY_API_KEY="xyzzy-value-1").redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "loss 0.5 / 2",
        "https://discuss.pytorch.org",
        "shape (32, 10) at train.py:18",
        "data/train.csv",
        "tokens = tokenizer(x)",
    ],
)
def test_what_is_not_private_is_left_alone(tmp_path: Path, text: str) -> None:
    assert redactor(tmp_path, PATH="/usr/bin", KEY_COUNT="1").redact(text) == text


def test_paths_are_named_from_the_script(tmp_path: Path) -> None:
    found = redactor(tmp_path).redact(f"{tmp_path}/models/net.py:3 and /opt/lib/site-packages/torch/nn/x.py:7")
    assert found == "models/net.py:3 and <packages>/torch/nn/x.py:7"


def test_quoted_rows_are_left_out() -> None:
    assert without_data({"message": 'row 3: "the patient of room 17 in Ulm"', "sheet": {"rows": 1}}) == {
        "message": 'row 3: "<text of 29 characters>"',
        "sheet": None,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'use tokenized_datasets["train"] and eval_dataset=tokenized_datasets["validation_matched"] here',
            'use tokenized_datasets["train"] and eval_dataset=tokenized_datasets["validation_matched"] here',
        ),
        (
            "decoded, 'the patient of room 17 in Ulm' is '[CLS] the patient of room 17'",
            "decoded, '<text of 29 characters>' is '<text of 28 characters>'",
        ),
        ("it's \"the patient's room 'is' number 17\", isn't it", "it's \"<text of 33 characters>\", isn't it"),
        ('print(f"the patient of room 17 in Ulm {n}")', 'print(f"<text of 33 characters>")'),
        ('the text "the patient of room 17 in Ulm\nand', 'the text "<text of 33 characters>'),
        ('cut: "the patient of \\"room 17\\" in Ulm".', 'cut: "<text of 33 characters>".'),
        ("“the patient of room 17 in Ulm”", "“<text of 29 characters>”"),
        ("the users' rows of the whole table and the rows'", "the users' rows of the whole table and the rows'"),
    ],
)
def test_only_what_stands_between_marks_is_quoted(text: str, expected: str) -> None:
    assert without_data(text) == expected


SCRIPT = '''"""A script."""
from helper import make as build
import torch, sys

def main():
    torch.manual_seed(0)
    x = torch.ones(4)
    x[0] = 3
    unused = build(2)
    model = build(x)
    model.train()

if __name__ == "__main__":
    main()
'''


def test_a_script_is_cut_down_to_what_a_line_needs(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "import json\nSIZE = 3\n\ndef other():\n    pass\n\ndef make(x):\n    return SIZE\n"
    )
    statements = read_statements(SCRIPT, tmp_path / "train.py", [])
    last = [s for s in statements if s.text == "model.train()"]
    assert text_of(list_needed(statements, last)).replace("\n\n", "\n") == (
        "SIZE = 3\ndef make(x):\n    return SIZE\nbuild = make\nimport torch\n"
        "torch.manual_seed(0)\nx = torch.ones(4)\nx[0] = 3\nmodel = build(x)\nmodel.train()\n"
    )


def test_a_module_of_ones_own_is_put_in(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("RATE = 0.1\n\ndef make():\n    return RATE\n\ndef other():\n    pass\n")
    statements = read_statements("import helper as h\nmodel = h.make()\n", tmp_path / "train.py", [])
    assert text_of(list_needed(statements, statements[-1:])).replace("\n\n", "\n") == (
        "RATE = 0.1\ndef make():\n    return RATE\nfrom types import SimpleNamespace\n"
        "h = SimpleNamespace(make=make)\nmodel = h.make()\n"
    )


def test_statements_are_left_out_while_it_is_shown(tmp_path: Path) -> None:
    statements = read_statements("a = 1\nb = 2\nc = a + 1\nd = 4\nprint(c)\n", tmp_path / "train.py", [])
    shown = smaller(statements, lambda fewer: "print(c)" in text_of(fewer))
    assert text_of(shown) == "a = 1\nc = a + 1\nprint(c)\n"


@pytest.mark.parametrize(
    "value",
    [
        np.random.default_rng(0).normal(size=(200, 5)).astype("float32"),
        np.random.default_rng(0).integers(0, 7, 200),
        np.random.default_rng(0).random((9, 2, 3)) < 0.5,
        np.full((300, 1), 2.5),
        np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 7.5]]),
    ],
)
def test_made_up_arrays_are_like_the_given_one(value: np.ndarray) -> None:
    made = eval(expression(value, 64) or "", {"np": np, "draw": np.random.default_rng(0)})
    assert made.dtype == value.dtype and made.shape[1:] == value.shape[1:] and len(made) == min(64, len(value))
    assert np.isnan(made).any() == np.isnan(value).any()
    assert np.nanmin(made) >= np.nanmin(value) - 6 * np.nanstd(value)


def test_made_up_texts_hold_no_word_of_the_given_ones() -> None:
    texts = [f"Patient {i} has a fever" for i in range(40)]
    made = eval(expression(texts, 64) or "", {"np": np, "draw": np.random.default_rng(0)})
    assert len(made) == 40 and not set(" ".join(made).split()) & set(" ".join(texts).split())


def test_made_up_lists_of_unequal_length_fit_each_other() -> None:
    ids = [list(range(n)) for n in (3, 9, 5, 7) * 5]
    names = {"np": np, "draw": np.random.default_rng(0)}
    first, second = (eval(expression(v, 64) or "", dict(names)) for v in (ids, [[1] * len(v) for v in ids]))
    assert [len(v) for v in first] == [len(v) for v in second] and {x for v in second for x in v} == {1}


def test_an_outline_has_no_numbers_of_rows_unless_asked_for() -> None:
    value = np.array([3, 1, 4, 1, 5])
    assert outline(value) == "ndarray (5,) int64, 1 to 5"
    assert "np.int64(4)" in first_rows(value)


def report_of(function: str, kind: str = "RuntimeError", message: str = "an unheard-of state zqx") -> Report:
    where = Place("train.py", 3)
    return Report(script="train.py", failure=Failure(type=kind, message=message, where=where, function=function))


def test_whose_fault_it_looks_like() -> None:
    finding = Finding(code="TW999", name="some-rule", severity=Severity.ERROR, message="m", where=Place("train.py", 3))
    assert blame(Report(script="train.py", findings=(finding,))).whose == "script"
    library = blame(report_of("numpy.linalg.inv"))
    assert library.whose == "library" and "of numpy " in library.why and library.post.startswith("https://")
    assert blame(report_of("numpy.linalg.inv", "TypeError")).whose == "script"
    assert blame(report_of("train.step")).whose == "script"
    assert blame(Report(script="train.py", internal_errors=("x",))).whose == "trainwright"


def test_an_exception_is_the_same_with_other_numbers() -> None:
    seen = report_of("f", message="shape 3 and 4\nmore")
    assert is_shown_again(seen, report_of("f", message="shape 64 and 5"))
    assert not is_shown_again(seen, report_of("f", message="width 64 and 5"))


def test_a_page_says_that_there_is_no_script() -> None:
    report = report_of("numpy.linalg.inv")
    text = "\n".join(page(report, blame(report), "", "none of 3 candidates shows it", {}))
    assert text.startswith(MARK) and "There is none: none of 3 candidates shows it." in text


def test_a_folder_that_is_no_bundle_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not a bundle"):
        bundle_program(
            Program(script="train.py"), tmp_path, Options(), seconds=1, with_data=False, say=lambda text: None
        )
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


TRAINING = """
import sys
import torch
from torch import nn

KEY = "hf_abcdefghijklmnopqrst"

def main():
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    w = torch.randn(10)
    y = x @ w
    print("unrelated", file=sys.stderr)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for i in range(0, 256, 32):
            loss = nn.functional.mse_loss(model(x[i : i + 32]), y[i : i + 32])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(KEY)

if __name__ == "__main__":
    main()
"""


def test_a_bundle_shows_the_finding_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = [sys.executable, "-m", "trainwright", "bundle", "--budget", "20", "--limit", "1", "train.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "trainwright-bundle"
    assert sorted(p.name for p in folder.iterdir()) == ["bundle.md", "report.json", "reproduce.py"]
    script, shown = (folder / "reproduce.py").read_text(), (folder / "bundle.md").read_text()
    assert "broadcast-loss" in shown and script.strip() in shown
    assert "unrelated" not in script and "hf_" not in script and script.count("\n") < 60
    assert all(str(tmp_path) not in p.read_text() for p in folder.iterdir())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.py", "trainwright-bundle"]
