"""The field exam can be held: seven questions on a few quick programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUICK = "wine_mlp|array_split|trainer_class|enumerate_start_modulo|autocast_bf16|warmup_on_copy"


def test_an_exam_of_seven(tmp_path):
    """How many faults are named is measured and published elsewhere, and is no test."""
    command = [sys.executable, "-m", "exam.field", "--seed", "smoke", "--faulty", "5", "--sound", "2"]
    more = [
        "--own",
        "--jobs",
        "1",
        "--program",
        QUICK,
        "--json",
        tmp_path / "exam.json",
        "--failures",
        tmp_path / "failures",
    ]
    environment = os.environ | {"TRAINWRIGHT_FIELD_CACHE": str(tmp_path / "cache")}
    ended = subprocess.run([*command, *more], capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    answers = json.loads((tmp_path / "exam.json").read_text(encoding="utf-8"))["answers"]
    faulty = [a for a in answers if a["marks"]]
    assert len(faulty) == 5 and len(answers) == 7
    assert all(a["because"] and a["kind"] in ("crash", "silent") for a in faulty)
    assert len({a["operator"] for a in faulty}) == 5
    assert not any(a["verdict"]["internal_errors"] for a in answers)
    assert all(a["verdict"]["stages"] or a["verdict"]["message"] for a in answers), "a check left no report"
    missed = [a for a in faulty if not a["marks"]["first"]]
    assert len(list((tmp_path / "failures").glob("*.py"))) >= len(missed)
    assert ended.stdout.count("| all |") == 4
