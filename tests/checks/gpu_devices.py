"""On a machine with a GPU: the scripts of tests/devices, with it and with `--device cpu`.

    python tests/checks/gpu_devices.py [NAME …]

With --device cpu everything is as on a machine without one: the CPU stands in, and no memory of the GPU is taken.
Without it nothing is redirected, and what is sound there is checked in silence on the GPU itself: that is what shows
that the scripts are right. Scripts for a Mac's GPU, for several GPUs or for flash attention are left out of that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]
# What one CUDA GPU and the packages of the tests do not suffice for.
NOT_ON_ONE_GPU = {"apple", "data_parallel", "distributed", "nccl_without_launcher", "lightning_gpus",
                  "trainer_device_map", "keras_mixed_float16", "keras_on_gpu", "keras_labels"}  # fmt: skip


def main() -> int:
    """Check every script both ways; returns how many were not as they have to be."""
    import torch

    assert torch.cuda.is_available(), "this is to be run where there is a GPU"
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    scripts = [*sorted((HERE / "devices").glob("*.py")), *sorted((HERE / "devices" / "faulty").glob("*.py"))]
    wrong = 0
    for script in scripts:
        if sys.argv[1:] and script.stem not in sys.argv[1:]:
            continue
        for device in ("cpu", "auto"):
            if device == "auto" and script.stem in NOT_ON_ONE_GPU:
                continue
            said = _check(script, device)
            wrong += bool(said)
            print(f"{'WRONG' if said else 'right'} --device {device:4} {script.stem}{said}", flush=True)
    print(f"{wrong} wrong")
    return wrong


def _check(script: Path, device: str) -> str:
    """What is not as it has to be; empty for nothing."""
    report = _report(script, device)
    if isinstance(report, str):
        return f": {report}"
    faults = [f"{f['name']}:{f['where'] and f['where']['line']}" for f in report["findings"] if f["severity"] != "note"]
    lines = [n for n, line in enumerate(script.read_text("utf-8").split("\n"), 1) if "# expect: " in line]
    wanted = [script.read_text("utf-8").split("# expect: ")[1].split()[0] + f":{n}" for n in lines]
    wrong = []
    if faults[:1] != wanted[:1]:
        wrong.append(f"found {faults}, wanted {wanted}")
    if not wanted and report["failure"]:
        wrong.append(f"raised {report['failure']['message'][:300]}")
    if report["internal_errors"]:
        wrong.append(f"internal {report['internal_errors']}")
    redirected = report["redirected"]
    if device == "auto" and redirected is not None:
        wrong.append(f"redirected {redirected} where there is a GPU")
    if device == "cpu" and script.stem != "picks_by_availability" and redirected is None:
        wrong.append("not redirected")
    setup = next(s for s in report["stages"] if s["stage"] == "setup")
    if device == "cpu" and "cuda" in setup["why"]:
        wrong.append(f"checked on {setup['why']}")
    return "".join(f"\n      {w}" for w in wrong)


def _report(script: Path, device: str) -> dict[str, object] | str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        command = [sys.executable, "-m", "trainwright", "check", "--device", device, "--json", str(target), str(script)]
        path = os.pathsep.join([str(HERE.parent / "src"), str(HERE / "helpers"), os.environ.get("PYTHONPATH", "")])
        try:
            ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240,
                                   env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        except subprocess.TimeoutExpired:
            return "took over 240 s"
        if not target.exists():
            return f"no report: {ended.stderr[-1500:]}"
        return json.loads(target.read_text("utf-8"))  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
