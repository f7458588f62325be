"""A watched training in JAX prints what it prints by itself, bit for bit."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "seen" / "sound_jax_parameters_in_a_list.py"
RUN = """
import runpy, sys
if sys.argv[2] == "watched":
    from trainwright.rehearsal import watch
    from trainwright.rehearsal.recorder import Recorder
    watch.watch(Recorder())
left = runpy.run_path(sys.argv[1])
print([leaf.tobytes().hex() for leaf in left["jax"].tree.leaves(left["params"])])
"""


def test_a_watched_run_is_the_run() -> None:
    pytest.importorskip("jax")
    printed = [
        subprocess.run([sys.executable, "-c", RUN, str(SCRIPT), how], capture_output=True, text=True, check=True).stdout
        for how in ("watched", "alone")
    ]
    assert printed[0] == printed[1]
