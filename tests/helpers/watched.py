"""Runs a snippet in a process of its own, with the watchers on or off: `watched(code)` is its record and what it printed."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from trainwright.rehearsal.record import Record

_FOLDERS = [str(Path(__file__).parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
_RUN = """
import pickle, runpy, sys
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch import finish
from trainwright.rehearsal.watch import watch
from trainwright.rehearsal.watch.numbers import Tee
script, out, on, *args = sys.argv[1:]
recorder = Recorder()
if on == "1":
    watch(recorder)
    sys.stdout = Tee(recorder, sys.stdout)
sys.argv = [script, *args]
sys.path.insert(0, __import__("os").path.dirname(script))
try:
    left = runpy.run_path(script, run_name="__main__")  # its variables stay until the record is made
finally:
    record = finish(recorder)
    with open(out, "wb") as file:
        pickle.dump(record, file)
"""


def run_script(script: Path, *args: str, on: bool = True, timeout: float = 300) -> tuple[Record, str]:
    """The record of a script's run, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "record")
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(script), str(out), "1" if on else "0", *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(_FOLDERS)},
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        return pickle.loads(out.read_bytes()), done.stdout


def watched(code: str, *args: str, on: bool = True) -> tuple[Record, str]:
    """The record of a snippet's run, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "snippet.py")
        script.write_text(code, "utf-8")
        return run_script(script, *args, on=on)
