"""`trainwright run`: a script is checked, then started anew, bit for bit as `python script.py`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
ANEW = "The script now starts again, for real.\n"


def started(folder: Path, *command: str) -> subprocess.Popen[str]:
    path = [str(TESTS / "tracing"), str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "WEIGHTS": str(folder / "weights"), "PYTHONPATH": os.pathsep.join(path),
        "OMP_NUM_THREADS": "1", "COLUMNS": "100",
    }  # fmt: skip
    return subprocess.Popen([sys.executable, *command], cwd=folder, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def ran(folder: Path, *command: str) -> tuple[int, str, str]:
    """Exit status, standard output and the digest of the final weights."""
    folder.mkdir()
    with started(folder, *command) as process:
        out, _ = process.communicate(timeout=300)
    weights = folder / "weights"
    return process.returncode, out, weights.read_text() if weights.exists() else ""


def test_a_loop_trains_bit_for_bit_as_python_does(tmp_path: Path) -> None:
    """It has dropout, batch norm, and a schedule by batches."""
    script = str(TESTS / "healthy" / "loops" / "one_cycle_per_batch.py")
    plain = ran(tmp_path / "plain", script)
    status, out, weights = ran(tmp_path / "run", "-m", "trainwright", "run", "--budget", "20", script)
    before, _, after = out.partition(ANEW)
    assert (status, after, weights) == plain
    assert weights.count("\n") == 1
    assert "nothing found" in before


SCRIPT = """
import os, sys, time
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
os.environ["SEEN"] = os.environ.get("SEEN", "") + "once"
for epoch in range(20):
    for i in range(0, 256, 32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[i:i + 32]), y[i:i + 32]).backward()
        optimizer.step()
print("trained", sys.argv[1:], os.environ["SEEN"], flush=True)
"""


def test_the_scripts_own_arguments_and_exit_status_are_passed_on(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(SCRIPT + "sys.exit(7)\n")
    status, out, _ = ran(tmp_path / "run", "-m", "trainwright", "run", str(script), "--epochs", "3")
    assert status == 7
    assert out.endswith(ANEW + "trained ['--epochs', '3'] once\n")


def test_a_module_starts_anew_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "ends.py").write_text(SCRIPT)
    with started(tmp_path / "run", "-m", "trainwright", "run", "-m", "ends", "7") as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.endswith(ANEW + "trained ['7'] once\n")


def test_a_script_with_an_error_is_not_started_anew(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(SCRIPT.replace("y = (x[:, 0] > 0).long()", "y = 2 * (x[:, 0] > 0).long()"))
    status, out, weights = ran(tmp_path / "run", "-m", "trainwright", "run", str(script))
    assert status == 1 and not weights
    assert "trained" not in out
    assert "The script was not run for real: fix the findings above first." in " ".join(out.split())


def _heed_interrupts() -> None:
    """A process that was started in the background inherits that they are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "end"])
def test_a_signal_ends_the_real_training(number: int, tmp_path: Path) -> None:
    """It is the script's own process, which `kill` reaches."""
    script = tmp_path / "long.py"
    script.write_text(SCRIPT + "time.sleep(120)\n")
    command = ["-m", "trainwright", "run", "--budget", "5", str(script)]
    path = [str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, *command], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=_heed_interrupts) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("trained"):
                break
        time.sleep(0.2)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert process.wait(timeout=60) in (-number, 1)
