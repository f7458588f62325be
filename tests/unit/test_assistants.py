"""What a coding assistant gets: answers of a bounded size, patches that leave the files alone, nothing outside of its folders."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from mcp import Client

from trainwright.core import Finding, Fix, Place, Proof, Report, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import to_dict
from trainwright.core.sample import MASKED, PADDING, Sample, SamplePart, Span
from trainwright.core.sheet import SCORES, WEIGHTS, Curve, Sheet
from trainwright.errors import UsageError
from trainwright.mcp import server
from trainwright.mcp.answers import MOST_TOKENS, Checked, _size, tell_check, tell_rows, tell_sheet
from trainwright.mcp.child import apply_patch, enter_folder
from trainwright.mcp.server import make_server

SCRIPT = "import numpy\n\nrate = 0.5\n\nfor step in range(3):\n    print(step, rate)\n"
LABELS = Finding(
    code="TW105",
    name="misaligned-labels",
    message="the labels do not belong to their rows",
    where=Place("train.py", 3),
    proof=Proof("they do in y"),
    fix=Fix(does="order both", diff="--- train.py\n"),
)


def checked(report: Report, number: str = "c1", patch: str = "", shows_rows: bool = True) -> Checked:
    return Checked(number, ("train.py",), patch, report, shows_rows)


def a_sheet(rows: int = 1, text: str = "good film") -> Sheet:
    spans = (Span(text=text), Span(text="label", kind=MASKED), Span(text="[PAD]", kind=PADDING))
    part = SamplePart(name="", form="text", spans=spans)
    sample = Sample(rows_of="held-out", output="", why=("at random",), row=3, update=9, inputs=(part,), label="1",
                    answer="0", probability=0.75, right=False, loss=1.3862944)  # fmt: skip
    return Sheet(
        updates=100,
        cut_at=100,
        scores=(SCORES.row(rows_of="held-out", rows=40, unit="rows", name="accuracy", last=0.5, constant=0.5, mark="at a constant"),),
        layers=tuple(WEIGHTS.row(name=f"layer {i}", shape=(3, 4)) for i in range(rows)),
        curves=(Curve(name="loss", updates=tuple(range(100)), values=tuple(1 / (1 + i) for i in range(100))),),
        samples=(sample,) * rows,
    )  # fmt: skip


def a_report(rows: int = 1, text: str = "good film", findings: tuple[Finding, ...] = (LABELS,)) -> Report:
    stages = (StageRun(stage=Stage.EVALUATION, status=Status.SKIPPED, why="no evaluation was seen"),)
    verdict = Verdict(shown=Shown.BROKEN, why="misaligned-labels")
    return Report(script="train.py", findings=findings, verdict=verdict, stages=stages, sheet=a_sheet(rows, text))


def test_a_check_is_told_with_its_first_cause_and_what_was_not_looked_at() -> None:
    told = json.loads(tell_check(checked(a_report()), None))
    assert (
        told["first_cause"].startswith("TW105 misaligned-labels (error) train.py:3: ")
        and told["proof"] == "they do in y"
    )
    assert told["diff"] == "--- train.py\n" and told["skipped"] == ["7 evaluation: no evaluation was seen"]
    assert told["seen"][0].endswith("← at a constant") and "cut short" in told["run"]
    assert "rows('c1', wrong=true)" in told["next"] and all(told.values())


def test_a_patched_check_says_what_is_gone() -> None:
    before, after = checked(a_report()), checked(a_report(findings=()), "c2", "--- train.py")
    told = json.loads(tell_check(after, before))
    assert told["before"].startswith("c1, without the patch: It is broken") and told["no_longer_found"] == [LABELS.name]


def test_a_row_is_told_as_the_model_got_it() -> None:
    told = json.loads(tell_rows(checked(a_report()), "held-out", True, 0))
    assert told["rows"] == [
        "held-out row 3, at random: label 1, answered 0 (75%), loss 1.39 wrong | text : good film⟨label⟩"
    ]
    none = json.loads(tell_rows(checked(a_report()), "training", False, 0))
    assert none == {"id": "c1", "not_shown": "no such row was kept"}


def test_why_no_rows_are_shown_is_said() -> None:
    assert "samples = false" in tell_rows(checked(Report(script="train.py"), shows_rows=False), "", False, 0)


@pytest.mark.parametrize("text", ["word " * 80, "字" * 5_000, '"\\\n' * 3_000])
def test_no_answer_is_longer_than_its_limit(text: str) -> None:
    long = Finding(
        code="TW105", name="misaligned-labels", message=text, proof=Proof(text), fix=Fix(does=text, diff=text)
    )
    one = checked(a_report(400, text, findings=tuple(replace(long) for _ in range(30))))
    for told in (tell_check(one, one), tell_sheet(one, ""), tell_sheet(one, "weights"), tell_rows(one, "", False, 0)):
        assert _size(json.loads(told)) <= MOST_TOKENS
        assert json.loads(told)["id"] == "c1"
    assert "cut" in json.loads(tell_check(one, None))


def test_rows_that_do_not_fit_are_reached_from_the_next_start() -> None:
    one = checked(a_report(60, "word " * 60))
    start, found = 0, 0
    while True:
        told = json.loads(tell_rows(one, "", False, start))
        found += len(told["rows"])
        if "next" not in told:
            break
        start = int(told["next"].rpartition("=")[2])
    assert found == 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "train.py").write_text(SCRIPT)
    (tmp_path / "outside.py").write_text(SCRIPT)
    (tmp_path / "inside" / "linked.py").symlink_to(tmp_path / "outside.py")
    monkeypatch.chdir(tmp_path / "inside")
    return (tmp_path / "inside").resolve()


@pytest.mark.parametrize("names", ["train.py|train.py", "a/train.py|b/train.py"])
@pytest.mark.parametrize("head", ["@@ -3,1 +3,1 @@", "@@ -90,7 +90,2 @@ def main():"])
def test_a_patch_is_in_force_in_memory_wherever_its_hunk_says_it_is(folder: Path, names: str, head: str) -> None:
    old, new = names.split("|")
    texts = apply_patch(f"--- {old}\n+++ {new}\n{head}\n-rate = 0.5\n+rate = 0.1", [folder])
    assert texts == {str(folder / "train.py"): SCRIPT.replace("0.5", "0.1")}
    assert (folder / "train.py").read_text() == SCRIPT


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("--- train.py\n+++ train.py\n@@ -3,1 +3,1 @@\n-rate = 0.7\n+rate = 0.1\n", r"rate = 0\.7\n[\s\S]*train\.py:3"),
        ("--- linked.py\n+++ linked.py\n@@ -3,1 +3,1 @@\n-rate = 0.5\n+rate = 0.1\n", "must lie within"),
        ("--- ../outside.py\n+++ ../outside.py\n@@ -3,1 +3,1 @@\n-rate = 0.5\n+rate = 0.1\n", "must lie within"),
        ("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+rate = 0.1\n", r"that are there.*new\.py"),
        ("--- ../inside/train.py\n+++ ../inside/train.py\n@@ -3,1 +3,1 @@\n-rate = 0.5\n+rate = 0.1\n", "named from"),
        ("rate = 0.1", "must be a unified diff"),
    ],
)
def test_a_patch_that_does_not_apply_is_refused(folder: Path, patch: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        apply_patch(patch, [folder])


@pytest.mark.parametrize("script", ["linked.py", "../outside.py", "torchrun ../outside.py", "../nothing.py"])
def test_a_script_outside_of_the_folders_is_refused(folder: Path, script: str) -> None:
    with pytest.raises(UsageError, match="must lie within"):
        enter_folder(script, (), [folder])


def test_a_script_is_found_in_the_folder_that_has_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert enter_folder("train.py", ("--epochs", "3"), [tmp_path / "other", folder]).arguments == ("--epochs", "3")
    assert Path.cwd() == folder


@pytest.mark.parametrize("script", ["torchrun train.py", ".venv/bin/torchrun train.py"])
def test_a_command_takes_further_arguments(folder: Path, script: str) -> None:
    program = enter_folder(script, ("--name", "a b"), [folder])
    assert (program.script, program.arguments) == ("train.py", ("--name", "a b"))
    (folder / "time series.py").write_text(SCRIPT)
    assert enter_folder("time series.py", ("--epochs", "3"), [folder]).script == "time series.py"


def test_a_table_that_is_not_there_is_told_with_those_that_are() -> None:
    told = json.loads(tell_sheet(checked(a_report()), "nope"))["no_such_table"]
    assert told.startswith("nope; ") and "Curves" in told and "Weights" in told


def test_one_training_is_compared_with_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_child(asked: dict, call: object) -> dict:
        return {"report": to_dict(a_report()), "samples": True}

    monkeypatch.setattr(server, "_run_child", run_child)
    tools = server.Tools([folder], samples=True)
    for training, patch, before in (
        (0, "", None),
        (2, "--- a", None),
        (2, "", None),
        (2, "--- a", "c3"),
        (0, "-", "c1"),
    ):
        told = json.loads(asyncio.run(tools.check(None, "train.py", patch=patch, training=training)))
        assert told.get("before", "None").startswith(str(before))


def test_the_tools_say_what_they_do(folder: Path) -> None:
    async def ask() -> None:
        async with Client(make_server([folder])) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
            assert set(tools) == {"check", "sheet", "rows", "explain"} and reading == {"sheet", "rows", "explain"}
            assert client.instructions and "patch" in client.instructions
            unknown = await client.call_tool("sheet", {"id": "c7"})
            assert unknown.is_error and "c7" in unknown.content[0].text
            found = await client.call_tool("explain", {"text": "misaligned-labels"})
            assert "TW105" in json.loads(found.content[0].text)["text"]
            missing = await client.call_tool("check", {"script": "tain.py"})
            assert missing.is_error and "Did you mean train.py" in missing.content[0].text
            (folder / "old.py").write_text("name = 'café'\n", "latin-1")
            patch = "--- old.py\n+++ old.py\n@@ -0,0 +1,1 @@\n+rate = 1\n"
            for wrong in ({"script": f"{'a' * 300}.py"}, {"script": "a\0.py"}, {"script": "torchrun it's.py"},
                          {"script": "old.py", "patch": patch}):  # fmt: skip
                odd = await client.call_tool("check", wrong)
                assert odd.is_error and "internal error" not in odd.content[0].text, odd.content[0].text
            (folder / "half.py").write_text("raise ValueError('half: \\ud83d')\n")
            half = await client.call_tool("check", {"script": "torchrun half.py", "arguments": ["--a", "b"]})
            assert "half: ?" in half.content[0].text and half.content[0].text.isprintable()
            assert "checks one process of half.py" in half.content[0].text

    asyncio.run(ask())


def test_a_check_that_is_cancelled_ends_its_processes(folder: Path) -> None:
    (folder / "train.py").write_text("import time\ntime.sleep(600)\n")

    async def ask() -> None:
        async with Client(make_server([folder])) as client:
            waits = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                waits.set()

            call = asyncio.create_task(client.call_tool("check", {"script": "train.py"}, progress_callback=hear))
            await waits.wait()
            processes = psutil.Process().children(recursive=True)
            assert any("trainwright.rehearsal.child" in " ".join(one.cmdline()) for one in processes)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert not psutil.wait_procs(processes, timeout=30)[1]

    asyncio.run(ask())


def test_without_its_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainwright.cli import mcp

    monkeypatch.delitem(sys.modules, "trainwright.mcp.server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(UsageError, match=r'pip install "trainwright\[mcp\]"'):
        mcp()
