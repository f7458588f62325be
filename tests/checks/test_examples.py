"""The scripts that a newcomer runs first."""

import subprocess
import sys
from pathlib import Path

import pytest

from checks import check_script, loud, said
from material import METRIC

EXAMPLES = Path(__file__).parents[2] / "examples"


def _source(place, folder: Path = EXAMPLES) -> str:
    return (folder / Path(place.file).name).read_text().split("\n")[place.line - 1]


@pytest.mark.slow
def test_one_check_finds_all_faults_of_the_tweets_script_in_order_with_lines_and_proven_fixes() -> None:
    report = check_script(EXAMPLES / "finetune_tweets.py", budget=300)
    found = [(f.name, _source(f.where).strip()) for f in report.findings]
    assert found == [
        ("renamed-argument", 'evaluation_strategy="epoch",'),
        ("renamed-argument", "tokenizer=tokenizer,"),
        ("untokenized-dataset", 'train_dataset=raw_datasets["train"],'),
        ("ragged-batch", "data_collator=default_data_collator,"),
        ("label-out-of-range", "model = AutoModelForSequenceClassification.from_pretrained(checkpoint)"),
        ("metrics-on-logits", 'return {"accuracy": accuracy_score(labels, predictions)}'),
    ], said(report)
    assert all(f.fix is not None and f.fix.tried for f in report.findings[:-1]), said(report)  # metrics have no door
    assert [len(set(f.after_repair)) for f in report.findings] == [0, 1, 1, 2, 3, 4]


@pytest.mark.slow
def test_all_five_are_named_where_the_script_measures_with_the_library_evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a course's chapter does, whose metric opens files in C++ and raises within the library."""
    text = (EXAMPLES / "finetune_tweets.py").read_text()
    for old, new in (
        ("from sklearn.metrics import accuracy_score", "import evaluate"),
        (".head(6000)", ".head(600)"),
        ("tweets[:5000]", "tweets[:500]"),
        ("tweets[5000:]", "tweets[500:]"),
        ("\n\ndef compute_metrics", '\nmetric = evaluate.load("glue", "mnli")\n\n\ndef compute_metrics'),
        (
            '{"accuracy": accuracy_score(labels, predictions)}',
            "metric.compute(predictions=predictions, references=labels)",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "glue").mkdir()
    (tmp_path / "glue" / "glue.py").write_text(Path(METRIC, "exact_match_ratio.py").read_text())
    monkeypatch.chdir(tmp_path)
    report = check_script(tmp_path / "train.py", budget=300)
    found = [(f.name, _source(f.where, tmp_path).strip()) for f in report.findings]
    assert found == [
        ("renamed-argument", 'evaluation_strategy="epoch",'),
        ("renamed-argument", "tokenizer=tokenizer,"),
        ("untokenized-dataset", 'train_dataset=raw_datasets["train"],'),
        ("ragged-batch", "data_collator=default_data_collator,"),
        ("label-out-of-range", "model = AutoModelForSequenceClassification.from_pretrained(checkpoint)"),
        ("metrics-on-logits", "return metric.compute(predictions=predictions, references=labels)"),
    ], said(report)
    assert all(f.fix is not None and f.proof is not None for f in report.findings), said(report)


@pytest.mark.slow
def test_the_mended_tweets_script_is_silent() -> None:
    report = check_script(EXAMPLES / "finetune_tweets_fixed.py", budget=300)
    assert not loud(report), said(report)
    assert not report.faulty, said(report)


def test_a_rule_s_page_is_found_by_name_code_and_error_message() -> None:
    message = "ValueError: operands could not be broadcast together with shapes (60,3) (60,)"
    for question, status in (("TW701", 0), ("metrics-on-logits", 0), (message, 0), ("no such thing", 1)):
        command = [sys.executable, "-m", "trainwright", "explain", question]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert ("TW701" in done.stdout) == (status == 0)


def test_explain_reads_a_traceback_from_standard_input() -> None:
    traceback = "Traceback (most recent call last):\n  File 'x'\nIndexError: Target 2 is out of bounds.\n"
    command = [sys.executable, "-m", "trainwright", "explain", "-"]
    done = subprocess.run(command, input=traceback, capture_output=True, text=True, check=False)
    assert "label-out-of-range" in done.stdout
