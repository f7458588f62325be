"""Training of several processes on one machine: one report, of the first process, and all of them end."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.rehearsal.ranks import remarks
from trainwright.seams.processes import Exchange, position
from trainwright.stages import RankFacts, Words

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS / "distributed"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def checked(folder: Path, script: str, *arguments: str, launcher: list[str] = TORCHRUN,
            command: str = "check") -> tuple[int, str, dict[str, Any]]:  # fmt: skip
    """Exit status, what was printed, and the report."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]), "OMP_NUM_THREADS": "1",
        "SPAWN_PORT": str(port), "TMPDIR": str(folder), "GLOO_SOCKET_IFNAME": "lo", "COLUMNS": "200",
    }  # fmt: skip
    ours = ["-m", "trainwright", command, "--json", "report.json", str(SCRIPTS / script), *arguments]
    done = subprocess.run([sys.executable, *launcher, *ours], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=300)  # fmt: skip
    report = folder / "report.json"
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    assert not [p for p in folder.glob("trainwright-*") if p.is_dir()]
    return done.returncode, done.stdout, json.loads(report.read_text())


def names(report: dict[str, Any]) -> list[str]:
    return [f["name"] for f in report["findings"] if f["severity"] != "note"]


@pytest.mark.parametrize("script", ["ddp_digits.py", "accelerated.py", "trainer_digits.py"])
def test_healthy_training_of_two_processes_is_checked_once_and_in_silence(script: str, tmp_path: Path) -> None:
    """The first is run alone: a run of a process group would wait for the others for ever."""
    status, out, report = checked(tmp_path, script)
    assert (status, names(report), report["message"]) == (0, [], ""), report
    assert not report["internal_errors"] and report["sheet"]["updates"]
    assert report["verdict"]["why"].endswith("; this is one process of 2, run alone")
    assert {s["status"] for s in report["stages"]} <= {"passed", "skipped", "not shown"}
    assert out.count("trainwright ") == 1


def test_two_processes_that_believe_to_be_alone_are_told(tmp_path: Path) -> None:
    _, _, report = checked(tmp_path, "accelerated.py", "alone")
    assert names(report) == []
    assert report["message"].startswith("WORLD_SIZE is 2, but each process runs as if it were alone")


@pytest.mark.parametrize("arguments", [(), ("elastic",)], ids=["spawn", "elastic"])
def test_what_stops_processes_of_the_scripts_own_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    status, _, report = checked(tmp_path, "spawned.py", *arguments, launcher=[])
    assert (status, names(report)) == (1, ["label-out-of-range"])


def test_a_rank_that_ends_early_is_named(tmp_path: Path) -> None:
    _, _, report = checked(tmp_path, "one_rank_fails.py")
    assert report["message"].startswith("Rank 1 ended before its training: RuntimeError: no such disk.")


def test_run_checks_several_processes_and_leaves_their_training_to_the_launcher(tmp_path: Path) -> None:
    status, _, report = checked(tmp_path, "ddp_digits.py", command="run")
    assert status == 1  # it has not trained
    assert report["message"] == "`run` does not start a training with several processes: launch the script yourself."


def rank(number: int, **more: Any) -> RankFacts:
    given = {"world_size": 2, "believed": 2, "rows": 100, "sharded": True, "samples": "a",
             "batch": f"b{number}", "weights": "w"}  # fmt: skip
    return RankFacts(**{"rank": number, **given, **more})


def test_ranks_that_share_out_one_set_are_not_remarked_on() -> None:
    assert remarks([rank(0), rank(1)], Words()) == []
    assert remarks([rank(0, batch=""), rank(1, batch="")], Words()) == []
    assert remarks([rank(0, sharded=False), rank(1, sharded=False)], Words()) == []


def test_other_weights_and_the_same_batch_are_remarked_on() -> None:
    assert "different weights" in remarks([rank(0), rank(1, weights="v")], Words())[0]
    same = [rank(n, batch="b", sharded=False) for n in (0, 1)]
    assert "begin with the same batch" in remarks(same, Words())[0]


def test_an_exchange_gives_what_came_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    exchange = Exchange(os.getpid())
    exchange.put("rank-1", {"rank": 1})
    assert exchange.gather(["rank-1", "rank-2"], seconds=0.1) == {"rank-1": {"rank": 1}}
    exchange.clear()
    assert exchange.get("rank-1") is None
    assert not list(tmp_path.iterdir())


def test_one_process_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert position() is None
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert position() is None
