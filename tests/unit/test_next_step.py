"""The last line of a report: what to do next, with the command for this script."""

import shlex
import sys
from dataclasses import replace

import pytest

from trainwright.checking import _command, _command_again
from trainwright.core import Finding, Fix, Place, Report, Safety, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import Command
from trainwright.core.sheet import SCORES, Sheet
from trainwright.core.verdict import ON_PURPOSE, SHORT_OF_MEMORY
from trainwright.options import Options
from trainwright.report import html
from trainwright.report.next_step import next_step
from trainwright.start.command_line import arrange_words
from trainwright.start.scripts import program_of

COMMAND = Command(
    options=("--seed", "2"),
    words=("train.py", "--name", "a b"),
    real=("python", "train.py", "--name", "a b"),
    budget=60,
)
AGAIN = "trainwright check --seed 2 train.py --name 'a b'"
FAULT = Finding(code="TW401", name="label-out-of-range", message="…", where=Place("train.py", 5))
DIFF = "--- train.py\n+++ train.py\n"
MENDABLE = Finding(
    code="TW401", name="label-out-of-range", message="…", fix=Fix(does="…", safety=Safety.SAFE, diff=DIFF)
)
NOTE = Finding(code="TW401", name="label-out-of-range", message="…", severity=Severity.NOTE)
WARNED = replace(NOTE, severity=Severity.WARNING)
HELD_OUT = (SCORES.row(name="accuracy", rows_of="held-out"),)
FAILED = StageRun(stage=Stage.REHEARSAL, status=Status.FAILED)


def told(shown: Shown, **of: object) -> str:
    return by(shown, "…", **of)


def by(shown: Shown, why: str, **of: object) -> str:
    verdict = Verdict(shown=shown, why=why)
    sheet = Sheet(updates=10, **of.pop("sheet", {}))  # type: ignore[arg-type]
    return next_step(Report(**{"script": "train.py", "typed": COMMAND, "verdict": verdict, "sheet": sheet, **of}))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (told(Shown.LEARNS), "nothing is left to mend, run the script for real: python train.py --name 'a b'"),
        (told(Shown.LEARNS, findings=(NOTE,)), "run the script for real: python train.py"),
        (told(Shown.BROKEN, findings=(FAULT,)), f"mend label-out-of-range at train.py:5, and check again: {AGAIN}"),
        (
            told(Shown.BROKEN, findings=(MENDABLE,)),
            f"{AGAIN.replace('check', 'check --diff fixes.patch')}; patch -p0 < fixes.patch",
        ),
        (told(Shown.BROKEN, stages=(FAILED,)), f"mend the error above, and check again: {AGAIN}"),
        (told(Shown.BROKEN, stages=(FAILED,), known=(FAULT,)), "nothing is new; what the baseline knows"),
        (told(Shown.BROKEN, stages=(FAILED,), known=(NOTE,)), f"mend the error above, and check again: {AGAIN}"),
        (told(Shown.LEARNS, known=(WARNED,)), "nothing is new; what the baseline knows is still to be mended"),
        (told(Shown.LEARNS, known=(NOTE,)), "nothing is left to mend"),
        (told(Shown.BROKEN, findings=(FAULT,), internal_errors=("…",)), "mend label-out-of-range"),
        (told(Shown.BROKEN, findings=(FAULT,), message="Interrupted: …"), "mend label-out-of-range"),
        (told(Shown.NOT_SHOWN, sheet={"cut_at": 10}), f"more time: {AGAIN.replace('check', 'check --budget 240')}"),
        (
            told(Shown.NOT_SHOWN, sheet={"cut_at": 10, "planned": 100}),
            f"more time: {AGAIN.replace('check', 'check --budget 600')}",
        ),
        (told(Shown.NOT_SHOWN, sheet={"cut_at": 10, "planned": 20}), "check --budget 144 "),
        (
            by(Shown.NOT_SHOWN, f"on one batch of 4 rows, {ON_PURPOSE}: …", sheet={"cut_at": 10}),
            "train on all rows, and",
        ),
        (by(Shown.NOT_SHOWN, f"after 10 updates {SHORT_OF_MEMORY}", sheet={"cut_at": 10}), "let it need less memory"),
        (
            told(Shown.CANNOT_BE_JUDGED, sheet={"cut_at": 10}),
            "judge it by its own numbers, and run the script for real: python",
        ),
        (told(Shown.NOT_SHOWN), f"evaluate rows that are not trained on, and check again: {AGAIN}"),
        (told(Shown.NOT_SHOWN, sheet={"scores": HELD_OUT}), "train for longer, or evaluate more rows"),
        (told(Shown.DOES_NOT_LEARN), "mend what the verdict names"),
        (next_step(Report(script="train.py", typed=COMMAND)), "name a script and arguments that train"),
        (told(Shown.LEARNS, internal_errors=("…",)), "report the internal error"),
        (told(Shown.LEARNS, message="Interrupted: …"), "let it run to its end"),
        (told(Shown.LEARNS, typed=None), ""),
    ],
)
def test_each_outcome_has_its_line(line: str, expected: str) -> None:
    assert expected in line and bool(expected) == bool(line)


@pytest.mark.parametrize("name", ["train.ipynb, cell 3", "/elsewhere/train.py"])
def test_a_fix_that_no_patch_holds_is_mended_by_hand(name: str) -> None:
    fix = Fix(does="…", safety=Safety.SAFE, diff=f"--- {name}\n+++ {name}\n")
    assert told(Shown.BROKEN, findings=(replace(FAULT, fix=fix),)).startswith("mend label-out-of-range at train.py:5")


def test_a_patch_that_is_written_is_to_be_applied() -> None:
    command = Command(options=("--diff", "my fixes"), words=("t.py",), real=("python", "t.py"), budget=60)
    assert told(Shown.BROKEN, findings=(MENDABLE,), typed=command) == "apply the patch: patch -p0 < 'my fixes'"


@pytest.mark.parametrize(
    ("typed", "options", "real"),
    [
        ("check --seed 2 train.py --epochs 3", "--seed 2", "python train.py --epochs 3"),
        ("check --budget=60 --diff=F --no-repair train.py", "--budget 60 --diff F --no-repair", "python train.py"),
        ("check -- train.py -x", "", "python train.py -x"),
        ("run --budget 9 train.py", "--budget 9", "python train.py"),
        ("check -m package.train -x", "-m", "python -m package.train -x"),
        ("check -- torchrun --nproc_per_node 4 train.py", "", "torchrun --nproc_per_node 4 train.py"),
        ("check -- python3 train.py", "", "python3 train.py"),
        ("check book.ipynb", "", ""),
    ],
)
def test_the_command_is_the_one_that_was_typed(
    typed: str, options: str, real: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainwright.cli import options_of

    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch(), (tmp_path / "book.ipynb").touch()
    given = shlex.split(typed)
    monkeypatch.setattr(sys, "argv", ["trainwright", *given])
    arranged, _ = arrange_words(given, options_of)
    script, *arguments = arranged[arranged.index("--") + 1 :]
    found = _command(program_of(script, arguments, module="-m" in given[:2]), Options())
    assert found is not None
    assert (shlex.join(found.options), shlex.join(found.real)) == (options, real)


def test_a_page_has_neither_the_line_nor_the_files_that_were_written() -> None:
    written = Command(options=("--html", "/home/me/r.html", "--seed", "2"), words=("t.py",), real=(), budget=60)
    assert _command_again(written) == "trainwright check --seed 2 t.py" and _command_again(None) == ""
    assert "mend label-out-of-range" not in html.render(Report(script="t.py", typed=written, findings=(FAULT,)))
