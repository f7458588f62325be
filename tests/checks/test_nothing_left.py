"""A check leaves nothing behind: no byte in a file, no record in a log, no run at a tracker, no word to another machine."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks import check_apart, check_script, loud, said
from trainwright.checking import NOT_ISOLATED, judge_program
from trainwright.options import Options
from trainwright.rehearsal.request import PYTHON
from trainwright.start.program import Program

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[1] / "nothing_left"
HUNG_SECONDS = 300


def ran(script: str, folder: Path, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script run in a folder that is its home too, on a machine without a network."""
    folder.mkdir()
    noted = folder.parent / "keras"  # one of the folders whose downloads stay
    noted.mkdir(exist_ok=True)
    path = [str(SCRIPTS / "refusing"), str(SCRIPTS / "stand_ins"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "HOME": str(folder), "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1",
        "ATTEMPTS": str(noted / "attempts"), "KERAS_HOME": str(noted), "PYTHONDONTWRITEBYTECODE": "1", **variables,
    }  # fmt: skip
    if not variables:
        environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run([sys.executable, *before, str(SCRIPTS / script)], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=HUNG_SECONDS, check=False)  # fmt: skip


def checked(script: str, folder: Path) -> dict[str, object]:
    """The report of a check, with all its findings in the message of a failure."""
    done = ran(script, folder, "-m", "trainwright", "check", "--json", str(folder.parent / "report.json"))
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]  # some of them learn nothing
    report: dict[str, object] = json.loads((folder.parent / "report.json").read_text("utf-8"))
    return report


def left_in(folder: Path) -> dict[str, str]:
    """Every file and folder below one, with what it holds."""
    files = sorted(folder.rglob("*"))
    return {
        str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() if f.is_file() else "" for f in files
    }


@pytest.mark.parametrize(
    "script",
    ["loop.py", "accelerated.py", "finally_saves.py", "trainer.py", "lightning_module.py",
     pytest.param("keras_fit.py", marks=pytest.mark.keras)],
)  # fmt: skip
def test_a_check_leaves_nothing_that_the_script_writes(script: str, tmp_path: Path) -> None:
    report = checked(script, tmp_path / "checked")
    assert left_in(tmp_path / "checked") == {}
    assert report["kept_away"]
    assert not (tmp_path / "keras" / "attempts").exists()


def test_trackers_and_the_hub_need_no_key_and_reach_nobody(tmp_path: Path) -> None:
    report = checked("trackers.py", tmp_path / "checked")
    assert left_in(tmp_path / "checked") == {}
    attempts = tmp_path / "keras" / "attempts"  # the script's own word, which the kernel keeps here
    assert {*(attempts.read_text("utf-8").split() if attempts.exists() else ())} <= {"hooks.slack.example.org"}
    names = " ".join(map(str, report["kept_away"]))
    for service in ("Aim", "ClearML", "Comet", "Hugging Face Hub", "MLflow", "Neptune", "Optuna's storage", "TensorBoard", "W&B",
                    "trackio"):  # fmt: skip
        assert f"{service} (disabled)" in names


def test_the_test_sees_connections_that_are_made(tmp_path: Path) -> None:
    script = tmp_path / "asks.py"
    script.write_text("import urllib.request\nurllib.request.urlopen('https://example.org', timeout=5)\n")
    assert ran(str(script), tmp_path / "plain").returncode == 1
    assert (tmp_path / "keras" / "attempts").exists()


SCRIPT = """
import logging
import sys
from digits import loader, step

logger = logging.getLogger("mine")
logger.setLevel(logging.INFO)
logger.addHandler(logging.FileHandler("train.log"))
out = open("out.txt", "w")
for _ in range(2):
    for x, y in loader:
        loss = step(x, y)
        logger.info("%.6f", loss)
        out.write(f"{loss.item():.6f}\\n")
"""


def test_run_writes_and_logs_for_real_what_python_does(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    (tmp_path / "digits.py").write_text((SCRIPTS / "digits.py").read_text("utf-8"))
    plain = ran(str(script), tmp_path / "plain")
    run = ran(str(script), tmp_path / "run", "-m", "trainwright", "run")
    assert (plain.returncode, run.returncode) == (0, 0), run.stdout[-3000:] + run.stderr[-3000:]
    assert len((tmp_path / "run" / "train.log").read_text().splitlines()) == 32
    assert left_in(tmp_path / "run") == left_in(tmp_path / "plain")


def test_where_the_kernel_refuses_what_is_opened_in_python_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is written before the training: a file of an earlier run is as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "out.txt").write_text("of an earlier run\n", encoding="utf-8")
    script = tmp_path / "train.py"
    script.write_text("from pathlib import Path\nPath('new').mkdir()\n" + SCRIPT.replace("train.log", "new/train.log"))
    (tmp_path / "digits.py").write_text((SCRIPTS / "digits.py").read_text("utf-8"))
    before = left_in(tmp_path)
    monkeypatch.setattr("trainwright.rehearsal.process.KERNEL", PYTHON)
    report = judge_program(Program(script="train.py"), Options(budget=8), lambda text: None)
    assert left_in(tmp_path) == before
    assert report.message.endswith(NOT_ISOLATED) and not loud(report), said(report)


IN_C = """
import os
from pyarrow import fs
fs.LocalFileSystem().open_output_stream("by_arrow").close()
"""


def test_where_the_kernel_refuses_what_libraries_in_c_write_is_refused_and_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "train.py").write_text(SCRIPT + IN_C)
    (tmp_path / "digits.py").write_text((SCRIPTS / "digits.py").read_text("utf-8"))
    before = left_in(tmp_path)
    monkeypatch.setattr("trainwright.rehearsal.process.KERNEL", PYTHON)
    report = judge_program(Program(script="train.py"), Options(budget=60), lambda text: None)
    assert left_in(tmp_path) == before
    assert not loud(report) and "refused" in report.stages[-1].why, said(report)


def test_settings_of_trackers_are_those_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.delenv("NEPTUNE_MODE", raising=False)
    script = tmp_path / "ends.py"
    script.write_text("import os\nassert os.environ['WANDB_MODE'] == 'disabled'\nraise ValueError('ended')\n")
    assert "ended" in said(check_script(script))
    assert os.environ["WANDB_MODE"] == "online" and "NEPTUNE_MODE" not in os.environ


def test_a_notification_that_fails_without_a_network_is_no_finding(tmp_path: Path) -> None:
    script = tmp_path / "notifies.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import json\nimport http.client\nimport urllib.request\n"
        "from digits import loader, step\n"
        "for x, y in loader:\n"
        "    loss = step(x, y)\n"
        "    request = urllib.request.Request('https://hooks.example.org/a', data=json.dumps({'a': 1}).encode())\n"
        "    urllib.request.urlopen(request, timeout=5).read()\n"
        "    line = http.client.HTTPSConnection('api.example.org', timeout=5)\n"
        "    line.request('POST', '/a', body='b')\n"
    )
    report = check_script(script)
    assert not loud(report) and not report.faulty, said(report)
    assert "another machine" in report.stages[-1].why


def test_an_evaluation_that_maps_in_several_processes_is_rehearsed_in_silence(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "healthy" / "loops" / "files_by_arrow.py").read_text("utf-8")
    assert text.count("with_indices=True)") == 1
    (tmp_path / "train.py").write_text(text.replace("with_indices=True)", "with_indices=True, num_proc=2)"))
    report = check_apart(tmp_path / "train.py")
    assert not loud(report) and not report.faulty and report.failure is None, said(report)
