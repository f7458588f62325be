"""One report with everything in it, against stored files; `pytest tests/unit/test_reports.py --rewrite` stores them anew."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from trainwright.core import (
    RULE_STAGES,
    Failure,
    Finding,
    Fix,
    LibraryWarning,
    Outcome,
    Place,
    ProfilePoint,
    Proof,
    Repair,
    Report,
    Safety,
    Seam,
    Severity,
    Shown,
    Stage,
    StageRun,
    Status,
    Verdict,
)
from trainwright.core import sheet as sheets
from trainwright.core.report import from_dict, to_dict
from trainwright.core.sample import ConfusedRow, GeneratedText, Sample, SamplePart, Span
from trainwright.core.sheet import CLASSES, DRAWN, INPUTS, OWN, PIECES, SCORES, WEIGHTS, Curve, Row, Sheet
from trainwright.core.trial import LOSS, WRONG_SHARE_A_CLASS
from trainwright.report import html, terminal, words
from trainwright.report import json as as_json

GOLDEN = Path(__file__).parents[1] / "golden"
DIFF = """--- train.py
+++ train.py
@@ -5,1 +5,1 @@
-model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased")
+model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=3)
"""
OUTPUTS = Finding(
    code="TW401",
    name="label-out-of-range",
    message="the model has 2 outputs, and labels go up to 2, first in row 3: it needs 3",
    measured={"outputs": 2, "smallest_label": 0, "largest_label": 2, "needed_outputs": 3},
    where=Place("train.py", 5),
    proof=Proof("with this change in memory (give the head 3 outputs), the loss stage passes"),
    repair=Repair("give the head 3 outputs", Seam.TRAINER, lambda call: call),
    fix=Fix(does="give the model 3 outputs (num_labels=3)", safety=Safety.SAFE, diff=DIFF, tried=True, verified=True),
)
RATE = Finding(
    code="TW605",
    name="excessive-learning-rate",
    message="a learning rate of 5 raises the loss of one batch from 1.099 to <inf> & beyond; 0.05 lowers it to 0.21",
    measured={"learning_rate": 5.0, "last_loss": float("inf"), "batch": "rows 0-15, 'train'"},
    where=Place("train.py", 8),
    proof=Outcome(
        changed="0.01 times the learning rate",
        before=(float("nan"), 8.71, 9.02),
        after=(0.2104, 0.19, 0.2555),
        steps=16,
    ),
    repair=Repair("0.01 times the learning rate", Seam.OPTIMIZER, lambda call: call),
    fix=Fix(does="write learning_rate=0.05", safety=Safety.UNSAFE, tried=True),
    after_repair=("label-out-of-range", "ragged-batch", "ragged-batch"),
)
METRIC = Finding(
    code="TW703",
    name="training-mode-evaluation",
    severity=Severity.WARNING,
    message="dropout was active while the model was evaluated",
    where=Place("/elsewhere/own_trainer.py", 1204),
    warned=("lightning warned at train.py:12: Found 3 module(s) in train mode",),
    repair=Repair("evaluate without dropout", Seam.FORWARD, lambda call: call),
)
PADDING = Finding(
    code="TW214",
    name="mostly-padding",
    severity=Severity.NOTE,
    message="61 % of the positions of a batch are padding",
    measured={"padding_share": 0.6112, "rows": 38158},
    fix=Fix(does="group rows of similar length"),
)
REPORT = Report(
    script="train.py",
    framework="transformers",
    versions={"python": "3.11.7", "torch": "2.13.0", "transformers": "5.23.0"},
    seconds=12.345,
    findings=(OUTPUTS, METRIC, PADDING, RATE),
    stages=(
        StageRun(stage=Stage.SETUP, status=Status.PASSED, seconds=0.01,
                 why="DistilBertForSequenceClassification, 2,057,603 of 2,057,603 parameters train, cpu fp32, 75 updates planned"),
        StageRun(stage=Stage.DATASET, status=Status.PASSED, why="train 400 rows, 3 label values over 400 rows", seconds=0.81),
        StageRun(stage=Stage.BATCH, status=Status.PASSED, seconds=0.1,
                 why="input_ids (16, 32) int64, attention_mask (16, 32) int64, labels (16,) int64, 61% padding"),
        StageRun(stage=Stage.FORWARD, status=Status.PASSED, why="output (16, 3) float32", seconds=0.6),
        StageRun(stage=Stage.LOSS, status=Status.REPAIRED, why="label-out-of-range"),
        StageRun(stage=Stage.GRADIENTS, status=Status.PASSED, why="40 of 40 parameters reached, norm 0.332"),
        StageRun(stage=Stage.OPTIMIZER, status=Status.FAILED, why="excessive-learning-rate", seconds=10.5),
        StageRun(stage=Stage.EVALUATION, status=Status.SKIPPED, why="there is no evaluation set"),
        StageRun(stage=Stage.OVERFIT, status=Status.SKIPPED, why="the optimizer stage failed"),
        StageRun(stage=Stage.BASELINE, status=Status.SKIPPED, why="the overfit stage could not be checked"),
    ),
    message="The check ends at the first training call; it did not check the one at line 31.",
    failure=Failure(
        type="RuntimeError", message="CUDA error: <unknown>\nand more", where=Place("train.py", 12), function="torch.add",
        trace=("train.py:12 in <module>: trainer.train()",),
    ),
    verdict=Verdict(shown=Shown.BROKEN, why="label-out-of-range and 1 more"),
    date="2026-11-29T14:13+01:00", command="trainwright check train.py --rows '<all> rows'",
    profile=(
        ProfilePoint(name="the model's input", share=0.93, accuracy=0.95, permuted=0.34),
        ProfilePoint(name="body.0 (Linear)", share=0.5, accuracy=0.67, permuted=0.34, where=Place("train.py", 5)),
        ProfilePoint(name="relu", share=0.0, accuracy=0.33, permuted=0.34, where=Place("train.py", 5)),
    ),
    sheet=Sheet(
        updates=75, planned=75, seconds=4.2, isolation="kernel", best_update=50, kept_update=50,
        scores=(SCORES.row(name="accuracy", unit="rows", rows_of="held-out", rows=100, first=0.31, last=0.86, constant=0.34),),
        own=(OWN.row(name="eval_loss", source="logged", count=3, first=1.1, last=0.44, best=0.41, best_update=50),),
        classes=(
            CLASSES.row(label="2", output="", drawn=12, evaluated=33, right=0.0, taken_for="1 (97%)", mark="never found"),
            CLASSES.row(label="<0>", output="", drawn=300, evaluated=67, right=0.96),
        ),
        outputs=(sheets.OUTPUTS.row(name="3 classes", source="loss", drawn=312, evaluated=100, classes=2, classes_answered=2),),
        columns=(INPUTS.row(name="all 64 columns", rows_of="training", rows=312, least=-2.5, greatest=2.25, mean=0.01, deviation=1.0),),
        layers=(
            WEIGHTS.row(name="head.weight", shape=(3, 64), trains=True, before=0.1, after=0.12, moved=True, gradient=True),
            WEIGHTS.row(name="gate.weight", shape=(64, 64), trains=True, before=0.1, after=0.1, moved=False, gradient=True, mark="never moved"),
        ),
        curves=(Curve(name="loss", updates=(25, 50, 75), values=(1.1, 0.4, float("nan")), mark="not finite after update 74"),),
        pieces=(PIECES.row(what="evaluated", times=3, first_update=25, last_update=75, how="as in evaluation mode", where=Place("train.py", 12)),),
        drawn=(DRAWN.row(name="Dataset", rows_of="training", size=400, distinct=312, never=88, draws=1200, each=1200 / 312, most=20),),
        confused=(
            ConfusedRow(output="3 classes", label="<0>", answers=("<0>", "2"), counts=(64, 3)),
            ConfusedRow(output="3 classes", label="2", answers=("<0>", "2"), counts=(33, 0)),
        ),
        generated=(GeneratedText(rows_of="held-out", row=3, update=75, prompt="Once <b>upon\n", text=" a time", expected=" a hill"),),
        samples=(
            Sample(
                rows_of="held-out", output="", why=("at random",), row=12, update=75, label="<0>", answer="<0>", probability=0.97,
                right=True, loss=0.03, inputs=(
                    SamplePart(name="", form="text", note="5 of 8 places, the rest padding",
                               spans=(Span(text="[CLS]", kind="special"), Span(text=" <b>fine</b>\n"), Span(text="[PAD] × 3", kind="padding"))),
                ),
            ),
            Sample(
                rows_of="held-out", output="", why=("highest loss",), row=7, update=75, label="2", answer="<0>", probability=0.99,
                right=False, loss=4.6, inputs=(
                    SamplePart(name="", form="table", names=("age", "<income>"), values=(31.0, 2500.5)),
                    SamplePart(name="pulse", form="series", note="3 numbers", lines=((1.0, 3.0, 2.0),)),
                ),
            ),
        ),
    ),
    internal_errors=("rule TW999 no-such-rule: ValueError: an example (no_such_rule.py:12)",),
    kept_away=("58 log records", "W&B (disabled)", "3 files"),
    warnings=(
        LibraryWarning(
            text="Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
            "them in the opposite order\nand <more>",
            library="torch", category="UserWarning", level="warning", where=Place("train.py", 10), phase="before training",
            means="The schedule skips its first value.", rule="schedule-before-optimizer",
        ),
        LibraryWarning(
            text="BertForSequenceClassification LOAD REPORT", library="transformers", category="transformers.modeling_utils",
            level="warning", where=None, phase="forward", means="Weights start at random.", everyday=True,
        ),
        LibraryWarning(
            text="something that nobody knows", library="somelib", category="UserWarning", level="warning", where=None,
            phase="forward",
        ),
    ),
)  # fmt: skip


def printed(report: Report, width: int = 80) -> str:
    """What a terminal of this width that is none would show."""
    file = io.StringIO()
    terminal.show(report, Console(file=file, width=width))
    return file.getvalue()


@pytest.fixture(autouse=True)
def beside_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)


@pytest.mark.parametrize(
    ("name", "render"), [("report.txt", printed), ("report.html", html.render), ("report.json", as_json.render)]
)
def test_a_report_is_rendered_as_stored(name, render, request) -> None:
    file, text = GOLDEN / name, render(REPORT)
    if request.config.getoption("--rewrite"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def test_without_a_terminal_nothing_is_coloured_and_no_line_is_too_long() -> None:
    for width in (60, 80, 120):
        text = printed(REPORT, width)
        assert "\x1b" not in text
        assert max(len(line) for line in text.split("\n")) <= width


def test_the_first_cause_stands_above_everything_else() -> None:
    text = printed(REPORT)
    order = [
        text.index(t)
        for t in (
            "First cause: TW401",
            "> 5 model =",
            "fix",
            "verified on an edited copy",
            "The pipeline raised",
            "0 setup",
            "TW605",
        )
    ]
    assert order == sorted(order)


def test_a_page_escapes_what_comes_from_the_script() -> None:
    page = html.render(replace(REPORT, script="<script>alert(1)</script>"))
    assert "<script>" not in page
    assert "&lt;inf&gt; &amp; beyond" in page


def test_brackets_of_the_script_are_no_markup_of_ours() -> None:
    diff = "@@ -1,2 +1,2 @@\n model = Sequential([layers.Dense(3)])\n-rate = 1\n+rate = 2\n"
    fix = Fix(does="lower the rate", safety=Safety.SAFE, diff=diff)
    finding = Finding(message="m", measured={}, where=None, fix=fix, code="TW605", severity=Severity.ERROR)
    assert "Sequential([layers.Dense(3)])" in printed(replace(REPORT, findings=(finding,)))


def test_an_empty_report_says_that_nothing_was_checked() -> None:
    for render in (printed, html.render):
        assert "nothing checked" in render(Report(script="train.py"))


def test_json_has_the_keys_of_schema_1() -> None:
    data = json.loads(as_json.render(REPORT))
    assert list(data) == ["schema", "script", "framework", "versions", "seconds", "start_seconds", "verdict", "first_cause", "findings", "stages",
                          "profile", "sheet", "samples", "redirected", "message", "failure", "internal_errors", "kept_away", "warnings", "training",
                          "begins", "trainings", "date", "command"]  # fmt: skip
    assert data["schema"] == 1
    assert data["first_cause"]["name"] == "label-out-of-range"
    assert list(data["first_cause"]) == ["code", "name", "stage", "severity", "message", "measured", "where", "proof",
                                         "repair", "fix", "after_repair", "warned"]  # fmt: skip
    assert list(data["first_cause"]["fix"]) == ["does", "safety", "diff", "tried", "verified"]
    assert [s["stage"] for s in data["stages"]] == [s.label for s in RULE_STAGES]


def test_without_a_known_warning_there_is_no_section() -> None:
    unknown = replace(REPORT, warnings=REPORT.warnings[1:])
    for render in (printed, html.render):
        assert words.WARNINGS in render(REPORT)
        assert words.WARNINGS not in render(unknown)


def test_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 1; got 2"):
        from_dict({"schema": 2})


def test_the_stored_report_reads_back_the_same() -> None:
    assert to_dict(from_dict(to_dict(REPORT))) == to_dict(REPORT)


def test_what_the_message_says_is_not_measured_a_second_time() -> None:
    finding = Finding(
        message="1,200 of 3,000 rows (40.3 %) of 'train' are 0.2104 apart, at a rate of 1e-05: none",
        measured={"rows": 3000, "first": 1200, "share": 0.4026, "apart": 0.21037, "rate": 1e-5, "set": "train",
                  "column": "rain", "smallest": 0, "largest": 3001, "answer": "none"},
    )  # fmt: skip
    assert words.measured(finding) == "column rain, smallest 0, largest 3,001"


def test_findings_are_parted_where_more_had_been_mended() -> None:
    def finding(name: str, *after: str) -> Finding:
        return Finding(message="", name=name, after_repair=after)

    shown = words.groups([finding("a"), finding("b", "a"), finding("c", "a", "a"), finding("d", "a", "a", "x", "y")])
    assert [(g.heading, [f.name for f in g.findings]) for g in shown] == [
        ("", ["a"]),
        ("Found after a was fixed in memory", ["b", "c"]),
        ("Found after x and y were fixed in memory too", ["d"]),
    ]
    assert words.groups([]) == []


def test_stages_that_were_not_checked_for_one_reason_share_a_row() -> None:
    stages = [StageRun(stage=Stage.SETUP, status=Status.FAILED, why="removed-api", seconds=0.3)]
    stages += [StageRun(stage=s, status=Status.SKIPPED, why="the setup stage failed") for s in RULE_STAGES[1:]]
    assert [(r.label, r.time, r.why) for r in words.rows(stages)] == [
        ("0 setup", "0.3 s", "removed-api"),
        ("1-9 dataset to baseline", "", "the setup stage failed"),
    ]
    apart = [replace(s, why=f"after {s.stage.label}") for s in stages]
    assert len(words.rows(apart)) == 10
    passed = [StageRun(stage=s, status=Status.PASSED, why="well") for s in RULE_STAGES]
    assert len(words.rows(passed)) == 10


def test_how_far_a_fix_was_tried_is_said_once_and_precisely() -> None:
    memory = replace(OUTPUTS, fix=replace(OUTPUTS.fix, verified=False))
    text = printed(replace(REPORT, findings=(memory,)))
    assert text.count("✓ fixed in memory") == 1
    assert "verified" not in text
    text = " ".join(printed(replace(REPORT, findings=(OUTPUTS,)), 200).split())
    assert "verified on an edited copy" in text
    assert "✓ fixed in memory" not in text


names = st.text(min_size=1, max_size=12)
numbers = st.floats(allow_nan=True) | st.integers() | names
places = st.none() | st.builds(Place, names, st.integers(1, 9999))
losses = st.lists(st.floats(allow_nan=True), max_size=3).map(tuple)
proofs = (
    st.none()
    | st.builds(Proof, names)
    | st.builds(
        Outcome,
        changed=names,
        before=losses,
        after=losses,
        steps=st.integers(0, 99),
        judged_by=st.sampled_from([LOSS, WRONG_SHARE_A_CLASS]),
    )
)
fixes = st.none() | st.builds(
    Fix, does=names, safety=st.sampled_from(Safety), diff=st.none() | names, tried=st.booleans(), verified=st.booleans()
)
findings = st.builds(
    Finding, message=names, measured=st.dictionaries(names, numbers, max_size=3), where=places, proof=proofs, fix=fixes,
    repair=st.none(), code=st.integers(0, 999).map(lambda n: f"TW{n:03d}"), name=names,
    severity=st.sampled_from(Severity), after_repair=st.lists(names, max_size=2).map(tuple),
)  # fmt: skip
runs = st.builds(
    StageRun, stage=st.sampled_from(Stage), status=st.sampled_from(Status), why=names, seconds=st.floats(0, 1e6)
)
reports = st.builds(
    Report, script=names, framework=st.none() | names, versions=st.dictionaries(names, names, max_size=2),
    seconds=st.floats(0, 1e6), findings=st.lists(findings, max_size=3).map(tuple), message=st.text(max_size=9),
    stages=st.lists(runs, max_size=3).map(tuple), internal_errors=st.lists(names, max_size=2).map(tuple),
    kept_away=st.lists(names, max_size=2).map(tuple),
    failure=st.none() | st.builds(Failure, type=names, message=st.text(max_size=9), where=places, function=names,
                                  trace=st.lists(names, max_size=2).map(tuple)),
)  # fmt: skip


@given(reports)
def test_every_report_reads_back_the_same(report: Report) -> None:
    data = to_dict(report)
    assert to_dict(from_dict(json.loads(json.dumps(data, allow_nan=False)))) == data


def told(failure: Failure) -> str:
    return " ".join(printed(Report(script="train.py", failure=failure)).replace("│", " ").split())


def test_an_error_that_explain_knows_is_explained_with_it() -> None:
    known = "PytorchStreamReader failed reading zip archive: failed finding central directory"
    for failure in (
        Failure(type="RuntimeError", message=known, where=None),
        Failure(type="OSError", message="no luck", where=None, causes=(f"RuntimeError: {known}",)),
    ):
        assert "Usually: The file is not complete" in told(failure)
        assert "no cause was proven" not in told(failure)
        assert "Usually: The file is not complete" in words.short(Report(script="train.py", failure=failure))
    assert "raised from RuntimeError: PytorchStreamReader failed" in told(failure)
    assert "no cause was proven" in told(Failure(type="OSError", message="no luck", where=None))


def test_a_long_message_is_shown_from_its_first_line() -> None:
    lines = "\n".join(f"line {number}" for number in range(40))
    shown = words.raised(Failure(type="ValueError", message=lines, where=None))
    assert shown.startswith("ValueError: line 0\nline 1\n") and shown.endswith("\n…") and "line 39" not in shown
    caught = "Caught KeyError in worker 0.\nOriginal Traceback (most recent call last):\n  File …"
    assert (
        words.raised(Failure(type="KeyError", message=caught, where=None)) == "KeyError: Caught KeyError in worker 0."
    )
    graph = "in user code:\n\n    File …\n\n    ValueError: too few\n"
    assert words.raised(Failure(type="ValueError", message=graph, where=None)) == "ValueError: ValueError: too few"
    assert words.raised(Failure(type="KeyError", message="", where=None)) == "KeyError"


@pytest.mark.parametrize(("constant", "told"), [(0.357, True), (0.34, False)])
def test_two_constants_of_the_same_rows_are_told_apart(constant: float, told: bool) -> None:
    """What a function of metrics gives for the best constant of its rows, beside that of the training labels."""
    score = SCORES.row(name="accuracy", unit="rows", rows_of="held-out", rows=300, first=None, last=0.9, constant=0.34)
    trained = Row(**{**vars(score), "rows_of": "training", "constant": 0.357})
    own = OWN.row(name="eval_accuracy", source="logged", count=1, first=None, last=0.9, constant=constant)
    text = " ".join(
        printed(Report(script="train.py", sheet=Sheet(updates=9, scores=(score, trained), own=(own,))), 200).split()
    )
    assert f"guessing: constant {constant:g}" in text and ("that of the training rows" in text) == told
