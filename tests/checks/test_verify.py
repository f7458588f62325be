"""A fix is verified when a second check, over an edited copy, no longer finds its fault and nothing else broke."""

import contextlib
import importlib
import inspect
import io
import json
import runpy
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from test_bad_input import command, training

from trainwright.core import (
    RULE_STAGES,
    Finding,
    Fix,
    Outcome,
    Place,
    RemoveKeyword,
    RenameKeyword,
    Report,
    SetKeyword,
    Severity,
    Shown,
    StageRun,
    Status,
    Verdict,
)
from trainwright.fixes.edits import fitting, patch
from trainwright.fixes.verify import mark_verified
from trainwright.seams.scripts.edited_files import standing_in

SOURCE = """\
args = TrainingArguments(
    "out",
    evaluation_strategy="epoch",
    overwrite_output_dir=True,
    learning_rate=1e-1,
)
model = load(path)
"""


@pytest.fixture(autouse=True)
def beside_the_script(tmp_path, monkeypatch) -> None:
    (tmp_path / "train.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)


def finding(code: str, name: str, line: int, *edits, **more) -> Finding:
    return Finding(
        code=code,
        name=name,
        message=f"{name} at {line}",
        where=Place("train.py", line),
        fix=Fix(does="mend it", edits=edits),
        **more,
    )


RENAMED = finding("TW001", "renamed-argument", 3, RenameKeyword("train.py", 3, "evaluation_strategy", "eval_strategy"))
REMOVED = finding("TW001", "renamed-argument", 4, RemoveKeyword("train.py", 4, "overwrite_output_dir"))
RATE = finding(
    "TW605", "excessive-learning-rate", 5, SetKeyword("train.py", 5, "learning_rate", "1e-3"),
    proof=Outcome(changed="rate", before=(9.0,) * 3, after=(1.0,) * 3),
)  # fmt: skip
OUTPUTS = finding("TW401", "label-out-of-range", 7, SetKeyword("train.py", 7, "num_labels", "3", function="load"))
BY_HAND = finding("TW701", "metrics-on-logits", 7)


def stages(**status: Status) -> tuple[StageRun, ...]:
    """All stages passed, but those named."""
    return tuple(StageRun(stage=s, status=status.get(s.label, Status.PASSED)) for s in RULE_STAGES)


def report(*findings: Finding, message: str = "", **status: Status) -> Report:
    return Report(script="train.py", findings=findings, stages=stages(**status), message=message)


def names(seen: Report) -> list[str]:
    return [f.fix.does and f.name for f in seen.findings if f.fix and f.fix.verified]


# What the second check is given


def test_all_edits_are_made_in_one_copy_and_the_file_stays_as_it_was(tmp_path) -> None:
    given = []

    def again(copies):
        given.append(dict(copies))
        return report()

    seen = mark_verified(report(RENAMED, REMOVED, RATE, OUTPUTS), again)
    after = """\
    args = TrainingArguments(
        "out",
        eval_strategy="epoch",
        learning_rate=1e-3,
    )
    model = load(path, num_labels=3)
    """
    assert given == [{str(tmp_path / "train.py"): textwrap.dedent(after)}]
    assert names(seen) == [f.name for f in (RENAMED, REMOVED, RATE, OUTPUTS)]
    assert "4 fixes applied verified all of them" in seen.message
    assert (tmp_path / "train.py").read_text() == SOURCE


def test_an_edit_that_does_not_fit_beside_the_others_is_left_out() -> None:
    other = finding("TW605", "excessive-learning-rate", 5, RenameKeyword("train.py", 5, "learning_rate", "lr"))
    last = finding("TW605", "excessive-learning-rate", 5, RemoveKeyword("train.py", 5, "learning_rate"))
    chosen = fitting(report(other, last, RENAMED))
    assert chosen == [other, RENAMED]


def test_without_an_edit_nothing_is_checked() -> None:
    seen = mark_verified(report(BY_HAND), lambda copies: pytest.fail("checked"))
    assert "None of these fixes can be written as an edit" in seen.message


def test_the_patch_of_a_report_is_one_that_patch_applies(tmp_path) -> None:
    (tmp_path / "fixes.patch").write_text(patch(report(RENAMED, REMOVED, OUTPUTS)))
    subprocess.run(["patch", "-p0", "-i", "fixes.patch"], check=True, capture_output=True)
    text = (tmp_path / "train.py").read_text()
    assert "eval_strategy" in text and "overwrite_output_dir" not in text and "num_labels=3" in text
    assert patch(report(BY_HAND)) == ""


def test_the_patch_of_a_file_without_a_last_newline_applies_too(tmp_path) -> None:
    (tmp_path / "train.py").write_text(SOURCE.rstrip("\n"))
    (tmp_path / "fixes.patch").write_text(patch(report(OUTPUTS)))
    subprocess.run(["patch", "-p0", "-i", "fixes.patch"], check=True, capture_output=True)
    assert (tmp_path / "train.py").read_text().endswith("model = load(path, num_labels=3)")


# What is made of it


def test_a_finding_that_is_still_there_is_not_verified_and_the_others_are() -> None:
    seen = mark_verified(report(RENAMED, RATE), lambda copies: report(RATE))
    assert names(seen) == ["renamed-argument"]
    assert "verified 1 of them. Excessive-learning-rate is not verified: it is still found." in seen.message


def test_a_finding_without_an_edit_is_expected_again_where_its_line_has_moved_to() -> None:
    moved = replace(BY_HAND, where=Place("train.py", 6), message="with other numbers")
    seen = mark_verified(report(REMOVED, BY_HAND), lambda copies: report(moved))
    assert names(seen) == ["renamed-argument"]
    assert "Beyond" not in seen.message


def test_a_new_fault_at_a_stage_that_was_checked_verifies_nothing() -> None:
    seen = mark_verified(report(RENAMED), lambda copies: report(OUTPUTS))
    assert names(seen) == []
    assert "finds a new fault, TW401 label-out-of-range (train.py:7)" in seen.message


@pytest.mark.parametrize(
    ("shown", "verified"), [(Shown.LEARNS, []), (Shown.LEARNS_IN_PART, []), (Shown.BROKEN, ["renamed-argument"])]
)
def test_only_a_training_that_learned_can_learn_worse(shown: Shown, verified: list[str]) -> None:
    poor = finding("TW1013", "held-out-at-constant", 9)
    first = replace(report(RENAMED), verdict=Verdict(shown=shown, why="seen"))
    seen = mark_verified(first, lambda copies: report(poor))
    assert names(seen) == verified and "held-out-at-constant (train.py:9)" in seen.message


def test_a_new_note_breaks_nothing() -> None:
    note = replace(OUTPUTS, severity=Severity.NOTE)
    assert names(mark_verified(report(RENAMED), lambda copies: report(note))) == ["renamed-argument"]


def test_a_fault_that_the_first_check_could_not_reach_is_told_and_breaks_nothing() -> None:
    later = dict.fromkeys([s.label for s in RULE_STAGES][1:], Status.SKIPPED)
    first = report(RENAMED, setup=Status.FAILED, **later)
    seen = mark_verified(first, lambda copies: report(OUTPUTS, loss=Status.FAILED))
    assert names(seen) == ["renamed-argument"]
    assert "it found label-out-of-range (train.py:7)" in seen.message


def test_a_stage_that_is_not_reached_any_more_verifies_nothing() -> None:
    seen = mark_verified(report(RENAMED), lambda copies: report(baseline=Status.SKIPPED))
    assert names(seen) == []
    assert "does not get through the baseline stage, which the first check did" in seen.message


def test_the_stages_that_a_rule_needs_must_have_been_checked() -> None:
    """The rule on rates looks at the batch memorized, whatever stage its code belongs to."""
    first = report(RATE, overfit=Status.FAILED)
    assert names(mark_verified(first, lambda copies: report())) == ["excessive-learning-rate"]
    seen = mark_verified(first, lambda copies: report(overfit=Status.FAILED))
    assert names(seen) == []
    assert "did not get through the overfit stage" in seen.message


def test_an_error_of_our_own_verifies_nothing() -> None:
    seen = mark_verified(report(RENAMED), lambda copies: replace(report(), internal_errors=("rule X",)))
    assert names(seen) == []


def test_without_a_second_report_the_reason_is_told() -> None:
    seen = mark_verified(report(RENAMED, message="Before."), lambda copies: "the second check was interrupted")
    assert names(seen) == []
    assert seen.message == "Before. No fix could be verified on an edited copy: the second check was interrupted."


# The copy


def test_a_copy_stands_in_where_python_reads_source_and_nowhere_else(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module, script = tmp_path / "beside_it.py", tmp_path / "script.py"
    module.write_text("def f():\n    return 'file'\n")
    script.write_text("import beside_it\nanswer = beside_it.f(), 'file', __file__\n")
    copies = {
        str(module): "# moved\ndef f():\n    return 'copy'\n",
        str(script): script.read_text().replace("'file'", "'copy'"),
    }

    def run(expected: str) -> None:
        sys.modules.pop("beside_it", None)
        answer = runpy.run_path("script.py")["answer"]
        assert answer[:2] == (expected, expected)
        assert Path(answer[2]).resolve() == script
        assert f"return '{expected}'" in inspect.getsource(importlib.import_module("beside_it").f)

    run("file")
    with standing_in(copies):
        run("copy")
        assert "file" in module.read_text()
    run("file")


def check(tmp_path: Path, *words: str) -> dict:
    """The JSON report of `check --verify`, and a comparison of the folder before and after."""
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.py")}
    command(tmp_path, "check", "--verify", "--json", "report.json", *words, status=1)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.py")} == before
    assert not {p.name for p in tmp_path.iterdir() if "copies" in p.name or "edit" in p.name}
    return json.loads((tmp_path / "report.json").read_text())


@pytest.mark.slow
def test_fixes_in_a_script_and_a_file_beside_it_are_verified_by_one_second_check(tmp_path) -> None:
    """It reads rows and a checkpoint with a head of two classes beside it, and has its settings in another file."""
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    from material import tweets

    with contextlib.redirect_stderr(io.StringIO()):
        config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4)
        DistilBertForSequenceClassification(config).save_pretrained(tmp_path / "checkpoint")
    tweets(80).to_json(tmp_path / "rows.json", orient="records")
    (tmp_path / "settings.py").write_text(
        textwrap.dedent("""\
        from material import QUIET
        from transformers import TrainingArguments
        args = TrainingArguments(
            **QUIET,
            overwrite_output_dir=True,
            evaluation_strategy="no",
            learning_rate=1e-3,
            per_device_train_batch_size=16,
        )
        """)
    )
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""\
        import sys
        from pathlib import Path
        import pandas as pd
        from material import tokenized, tokenizer
        from settings import args
        from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, set_seed
        set_seed(0)
        here = Path(__file__).parent
        rows = tokenized(pd.read_json(here / "rows.json").head(int(sys.argv[1])))
        model = AutoModelForSequenceClassification.from_pretrained(here / "checkpoint")
        Trainer(model, args, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer())).train()
        """)
    )
    seen = check(tmp_path, "train.py", "64")
    fixes = [(f["name"], f["where"]["file"], f["where"]["line"], f["fix"]["verified"]) for f in seen["findings"]]
    assert sorted(fixes) == [
        ("label-out-of-range", "train.py", 10, True),
        ("renamed-argument", "settings.py", 5, True),
        ("renamed-argument", "settings.py", 6, True),
    ], seen["message"]
    assert "verified all of them" in seen["message"]
    assert "train 64 rows" in seen["stages"][1]["why"]


@pytest.mark.slow
@pytest.mark.slow
def test_a_fix_in_a_package_run_as_a_module_is_verified(tmp_path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("")
    text = training().replace("use_cpu=True", 'use_cpu=True, evaluation_strategy="no"')
    (tmp_path / "project" / "fit.py").write_text(text)
    seen = check(tmp_path, "--diff", "fixes.patch", "-m", "project.fit")
    assert [(f["name"], f["fix"]["tried"], f["fix"]["verified"]) for f in seen["findings"]] == [
        ("renamed-argument", True, True)
    ]
    subprocess.run(["patch", "-p0", "-i", "fixes.patch"], cwd=tmp_path, check=True, capture_output=True)
    assert 'eval_strategy="no"' in (tmp_path / "project" / "fit.py").read_text()
