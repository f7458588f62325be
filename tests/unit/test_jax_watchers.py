"""A watched training in JAX prints what it prints by itself, bit for bit."""

import subprocess
import sys
from pathlib import Path

import pytest

from watched import watched

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


LOOPS = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
rows, how = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32), sys.argv[1]
def loss(w, x): return jnp.mean((x @ w - x) ** 2)
def update(w, x): return w - 0.1 * jax.grad(loss)(w, x)
def inner(w, x):
    return loss(lax.fori_loop(0, 5, lambda _, w: update(w, x), w), x)
@jax.jit
def epoch(w, rows):
    if how == "counted":
        return lax.fori_loop(0, 8, lambda i, w: update(w, lax.dynamic_slice_in_dim(rows, i * 8, 8)), w)
    if how == "batches":
        return lax.scan(lambda w, x: (update(w, x), None), w, rows.reshape(8, 8, 4))[0]
    if how == "in each other":
        return lax.scan(lambda w, _: (lax.fori_loop(0, 8, lambda i, w: update(w, rows), w), None), w, length=2)[0]
    if how == "within a gradient":
        return w - 0.1 * jax.grad(inner)(w, rows)
    return lax.while_loop(lambda at: at[0] < 8, lambda at: (at[0] + 1, update(at[1], rows)), (0, w))[1]
w = jnp.zeros((4, 4))
for _ in range(3):
    w = epoch(w, rows)
print(np.asarray(w).tobytes().hex())
"""


@pytest.mark.parametrize(
    ("how", "updates"),
    [("counted", 24), ("batches", 24), ("in each other", 48), ("within a gradient", 3), ("of unknown length", 3)],
)
def test_updates_in_a_compiled_loop_are_counted(how: str, updates: int) -> None:
    """Where its length is not known, calls are, and it is said."""
    pytest.importorskip("jax")
    record, printed = watched(LOOPS, how)
    assert (record.updates, record.watcher_errors) == (updates, {})
    assert bool(record.remarks) == (how == "of unknown length")
    assert printed == watched(LOOPS, how, on=False)[1]
