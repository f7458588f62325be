"""prepare as tasks: the same bytes as in one process, after failures too; on processes, a Ray cluster, and Slurm's scripts."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

pytest.importorskip("datatrove")

from datatrove.executor import slurm as slurm_of_datatrove
from test_lm_prepare import content, options

from corpus import code, corpus, write
from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import spread, steps
from trainwright_lm.corpus.prepare import prepare
from trainwright_lm.corpus.spread import Spread


def run_here(job: steps.Job, given: Spread, stage: Any, pool: None) -> None:
    """In place of processes: all tasks of a stage in this one."""
    for rank in reversed(range(stage.tasks)):  # no task may need an earlier one
        stage.work(job, rank, stage.tasks)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "_run", run_here)
    monkeypatch.setattr(spread, "_processes", lambda job, given: nullcontext())


def tasks(count: int) -> Spread:
    return Spread(executor="local", tasks=count, workers=2)


def families(root: Path, seed: int) -> Path:
    """Files that are alike by different degrees, in groups, in an order that does not follow them."""
    rng, files = np.random.default_rng(seed), dict[str, str | bytes]()
    for number in range(60):
        lines = code(int(rng.integers(6)), 40).splitlines()
        for at in range(int(rng.integers(9))):
            lines[int(rng.integers(1, 40))] = f"other_{rng.integers(99)} = {at}"
        files[f"g{rng.integers(5)}/f{number}.py"] = "\n".join(lines)
    return write(root, {**files, "g0/a.py": "()", "g1/b.py": "()", "g2/c.py": "[]", "g5/d.py": code(99)})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("count", "groups"), [(1, 6), (3, 6), (14, 2)], ids=["one", "some", "more-than-files"])
def test_tasks_prepare_the_same_bytes(tmp_path: Path, count: int, groups: int) -> None:
    given = options(corpus(tmp_path / "code", groups=groups, files=2 if groups == 2 else 5))
    prepare(tmp_path / "one", given)
    prepare(tmp_path / "many", given, spread=tasks(count))
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(6))
def test_tasks_judge_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    found: list[np.ndarray] = []
    real = steps.sides
    monkeypatch.setattr(steps, "sides", lambda job, pieces, v: found.append(np.array(v)) or real(job, pieces, v))
    given = options(families(tmp_path / "code", seed), validation=0.1)
    prepare(tmp_path / "one", given)
    prepare(tmp_path / "many", given, spread=tasks(1 + seed))
    assert np.array_equal(*found)
    assert len(set(found[0].tolist())) > 5
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.usefixtures("here")
def test_tables_and_folders_are_cut_between_files(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "code")
    rows = [{"text": code(900 + n), "repo_name": f"r{n % 3}", "path": f"p{n}.py"} for n in range(12)]
    parquet.write_table(pa.Table.from_pylist(rows[:6]), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps(row) for row in [*rows[6:], rows[0]]) + "\n{broken\n")
    given = options(folder, tmp_path / "a.parquet", tmp_path / "b.jsonl")
    prepare(tmp_path / "one", given)
    prepare(tmp_path / "many", given, spread=tasks(4))
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("wanted", [6_000, 9_000, 30_000, 10**6])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_tasks_take_the_same_sample(tmp_path: Path, wanted: int, count: int) -> None:
    given = options(corpus(tmp_path / "code"), corpus(tmp_path / "more", groups=2), max_bytes=wanted)
    prepare(tmp_path / "one", given)
    prepare(tmp_path / "many", given, spread=tasks(count))
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.usefixtures("here")
def test_a_sample_that_a_failure_interrupts_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = options(corpus(tmp_path / "code"), max_bytes=9_000)
    prepare(tmp_path / "one", given)
    real = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name == "limited":
            raise RuntimeError("lost")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(RuntimeError, match="lost"):
        prepare(tmp_path / "many", given, spread=tasks(3))
    monkeypatch.setattr(Path, "rename", real)
    prepare(tmp_path / "many", given, spread=tasks(3))
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("place", ["gather", "judge", "divide", "prove", "settle", "pack"])
def test_what_a_failed_task_left_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    given = options(corpus(tmp_path / "code"))
    prepare(tmp_path / "one", given)
    real: Callable[[Any, int, int], None] = getattr(steps, place)

    def fail(job: steps.Job, rank: int, count: int) -> None:
        real(job, rank, count)
        if rank == 0:
            raise RuntimeError("lost")

    monkeypatch.setattr(steps, place, fail)
    with pytest.raises(RuntimeError, match="lost"):
        prepare(tmp_path / "many", given, spread=tasks(3))
    monkeypatch.setattr(steps, place, real)
    with pytest.raises(UsageError, match="begun with --tasks 3"):
        prepare(tmp_path / "many", given, spread=tasks(4))
    with pytest.raises(UsageError, match="begun with --tasks 3"):
        prepare(tmp_path / "many", given)
    prepare(tmp_path / "many", given, spread=tasks(3))
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.parametrize(
    ("given", "changes", "said"),
    [
        (Spread(executor="ray"), {}, "needs --tasks"),
        (Spread(executor="slurm", tasks=2), {}, "needs --sbatch"),
        (Spread(executor="local", dry_run=True), {}, "need slurm"),
        (Spread(executor="local", tasks=-1), {}, "must not be negative"),
        (Spread(tasks=2), {}, "need --executor"),
        (Spread(executor="local"), {"max_group_bytes": 10}, "--max-group-bytes"),
        (Spread(executor="local"), {"sources": ("",)}, "an empty name"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, given: Spread, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        prepare(tmp_path / "out", options(tmp_path, **changes), spread=given)
    assert not (tmp_path / "out").exists()


def test_without_datatrove_a_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread.importlib.util, "find_spec", lambda name: None)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=re.escape(spread.INSTALL)):
        prepare(tmp_path / "out", options(tmp_path), spread=tasks(2))


@pytest.mark.usefixtures("here")
def test_too_little_to_split_is_said_as_without_tasks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="At least two different files"):
        prepare(tmp_path / "out", options(write(tmp_path / "code", {"a/a.py": code(1)})), spread=tasks(2))


# --- on processes of this machine


def end(job: steps.Job, rank: int, count: int) -> None:
    """A task whose process is killed, once."""
    if rank == 1 and not (job.out / "killed").exists():
        (job.out / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def fail(job: steps.Job, rank: int, count: int) -> None:
    """A task that ends with an error."""
    raise OSError(errno.ENOSPC, "No space left")


def wait(job: steps.Job, rank: int, count: int) -> None:
    """A task that does not end."""
    (job.out / str(os.getpid())).touch()
    time.sleep(600)


def job_of(out: Path) -> steps.Job:
    (out / "work").mkdir(exist_ok=True)
    return steps.Job(out=out, options=options(out))


def run_stage(job: steps.Job, work: Callable[[steps.Job, int, int], None]) -> None:
    stage = spread._Stage("stage", "do it", 3, work)
    with spread._processes(job, tasks(3)) as pool:
        spread._run(job, tasks(3), stage, pool)


def test_a_killed_process_is_named_and_its_task_repeated(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    with pytest.raises(ReadError, match=r"of the stage stage was killed.*fewer --workers"):
        run_stage(job, end)
    run_stage(job, end)
    assert len(list((tmp_path / "work/logs/stage/completions").iterdir())) == 3


def test_a_failed_task_says_why_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="No space left"):
        run_stage(job_of(tmp_path), fail)
    assert capfd.readouterr() == ("", "")
    assert "No space left" in (tmp_path / "work/logs/processes.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_began_them(tmp_path: Path, number: signal.Signals) -> None:
    job_of(tmp_path)
    # Where a shell began the tests in its background, they ignore the keyboard's signal, and so would this.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from pathlib import Path; "
        "import test_lm_spread as t; t.run_stage(t.job_of(Path(sys.argv[1])), t.wait)"
    )
    path = os.pathsep.join(filter(None, sys.path))
    begun = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE
    )
    while begun.poll() is None and len(found := [int(p.name) for p in tmp_path.iterdir() if p.name.isdigit()]) < 2:
        time.sleep(0.02)
    begun.send_signal(number)
    begun.communicate(timeout=20)
    until = time.monotonic() + 10
    while left := [one for one in found if Path(f"/proc/{one}").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.02)


@pytest.mark.slow
def test_the_terminal_has_a_line_per_stage(tmp_path: Path) -> None:
    wanted = command(tmp_path / "out", corpus(tmp_path / "code"), "--executor", "local", "--tasks", "2")
    said = subprocess.run(wanted, check=True, capture_output=True, text=True).stderr.splitlines()
    assert [line.partition(":")[0] for line in said] == [s.name for s in spread._stages(2, steps.pack)]


def command(out: Path, folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "trainwright", "lm", "prepare", str(folder), "--out", str(out), "--vocabulary", "400",
        "--validation", "0.2", *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_processes_of_one_machine_and_a_kill_in_the_middle(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "code")
    subprocess.run(command(tmp_path / "one", folder), check=True)
    wanted = command(tmp_path / "many", folder, "--executor", "local", "--tasks", "3", "--workers", "2")
    begun = subprocess.Popen(wanted, start_new_session=True)
    while begun.poll() is None and not (tmp_path / "many/work/logs/4-prove/completions").exists():
        time.sleep(0.05)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "many/work/pieces").rglob("*.arrow")}
    assert len(before) == 3
    again = subprocess.run(wanted, check=True, capture_output=True, text=True)
    assert "kept" in again.stdout
    assert content(tmp_path / "many") == content(tmp_path / "one")
    done = subprocess.run(wanted, check=True, capture_output=True, text=True)
    assert "already prepared" in done.stdout


# Stand-ins for Slurm's programs: sbatch runs the tasks of the array at once, in order.
_SBATCH = """#!/bin/bash
for last; do :; done
echo "$@" >> "$SLURM_SEEN"
sed -n 's/^#SBATCH //p' "$last" >> "$SLURM_SEEN"
count=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$last")
for one; do case $one in --export=ALL,*) export "${one#--export=ALL,}";; esac; done
grep -q merge_stats "$last" || for n in $(seq 0 $count); do
  SLURM_ARRAY_TASK_ID=$n SLURM_NODELIST=localhost bash "$last" >&2 || exit 1
done
echo "Submitted batch job $(wc -l < "$SLURM_SEEN")"
"""
_SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done
exec "$@"
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment with these programs."""
    programs = {
        "sbatch": _SBATCH,
        "srun": _SRUN,
        "scontrol": "#!/bin/bash\necho localhost\n",
        "squeue": "#!/bin/bash\n",
    }
    script = "#!/bin/bash\nexec {} -c 'from datatrove.tools.launch_pickled_pipeline import main; main()' \"$@\"\n"
    programs["launch_pickled_pipeline"] = script.format(sys.executable)
    for name, text in programs.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    path = f"{os.environ['PATH']}:{tmp_path / 'bin'}"
    return {**os.environ, "PATH": path, "SLURM_SEEN": str(tmp_path / "seen")}


SBATCH = ("--executor", "slurm", "--tasks", "2", "--sbatch", "partition=cpu,time=01:00:00,account=me")


def test_a_dry_run_prints_each_script_and_submits_nothing(tmp_path: Path) -> None:
    wanted = command(tmp_path / "out", corpus(tmp_path / "code"), *SBATCH, "--dry-run")
    done = subprocess.run(wanted, check=True, capture_output=True, text=True)
    scripts = re.findall(r"^\$ sbatch ([^\n]*) <<'END'\n(.*?)END\n", done.stdout, re.MULTILINE | re.DOTALL)
    named = [(match[1], arguments) for arguments, script in scripts if (match := re.search("job-name=(.*)", script))]
    assert [n for n, a in named if a] == [f"prepare-{s.name}" for s in spread._stages(2, steps.pack)]
    assert all("--dependency=afterok:JOB" in a for _, a in named[2:] if a)
    for _, script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        assert {"--partition=cpu", "--time=01:00:00", "--account=me", "--mem-per-cpu=2G"} <= set(script.split()) or (
            "merge_stats" in script
        )
    assert "Nothing was submitted" in done.stdout and "launched" not in done.stderr
    assert not (tmp_path / "out").exists()


def slurm_of(count: int = 2, **changes: Any) -> Spread:
    return Spread(executor="slurm", tasks=count, sbatch="partition=cpu,time=1", **changes)


@pytest.fixture
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In place of Slurm's programs: submitted scripts, and all jobs remain in the queue."""
    scripts: list[str] = []
    launch = slurm_of_datatrove.launch_slurm_job

    def submit(script: str, number: Callable[[str], str], *arguments: Any) -> str:
        if number is spread._shown:  # a dry run's, which has a stand-in for sbatch
            return str(launch(script, number, *arguments))
        scripts.append(script)
        return number(f"Submitted batch job {len(scripts)}")

    monkeypatch.setattr(slurm_of_datatrove, "launch_slurm_job", submit)
    queue = "\n".join(["7", *map(str, range(90, 99))])
    call = subprocess.check_output
    monkeypatch.setattr(subprocess, "check_output", lambda a, **k: queue if a[0] == "squeue" else call(a, **k))
    return scripts


def test_a_dry_run_binds_and_changes_nothing(
    tmp_path: Path, no_jobs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = options(corpus(tmp_path / "code")), tmp_path / "out"
    for count in (2, 3):
        assert prepare(out, given, spread=slurm_of(count, dry_run=True)).manifest is None
    prepare(out, given, spread=slurm_of(4))
    (out / "work/jobs").unlink()
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    capsys.readouterr()
    (done := out / "work/logs/1-gather/completions").mkdir()
    (done / "00002").touch()
    prepare(out, given, spread=slurm_of(4, dry_run=True))
    assert "--array=0-2\n" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in before if file != done.parent} == {
        file: time for file, time in before.items() if file != done.parent
    }
    with pytest.raises(UsageError, match="leave out --restart"):
        prepare(out, given, restart=True, spread=slurm_of(4, dry_run=True))


def test_jobs_are_submitted_once_and_their_paths_quoted(tmp_path: Path, no_jobs: list[str]) -> None:
    given, out = options(corpus(tmp_path / "code")), tmp_path / "a b"
    prepare(out, given, spread=slurm_of())
    count = len(no_jobs)
    assert count == 14
    words = [word for script in no_jobs for word in shlex.split(script, comments=True)]
    assert f"{out}/work/logs/1-gather/executor.pik" in words
    assert f"{out}/work/logs/1-gather/stats.json" in words
    with pytest.raises(UsageError, match="it has 7"):
        prepare(out, given, spread=slurm_of())
    assert len(no_jobs) == count


@pytest.mark.slow
def test_the_scripts_of_slurm_prepare_the_same_bytes(tmp_path: Path, slurm: dict[str, str]) -> None:
    folder = corpus(tmp_path / "code")
    subprocess.run(command(tmp_path / "one", folder), check=True)
    out = tmp_path / "as many"
    done = subprocess.run(command(out, folder, *SBATCH), check=True, env=slurm, capture_output=True, text=True)
    assert "Submitted" in done.stdout, done.stderr
    again = subprocess.run(command(out, folder, *SBATCH), check=True, capture_output=True, text=True)
    assert "already prepared" in again.stdout
    assert content(out) == content(tmp_path / "one")


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_machine_prepares_the_same_bytes(tmp_path: Path) -> None:
    """Two nodes on this machine, one of which is killed once the first task is done."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    folder, out = corpus(tmp_path / "code"), tmp_path / "many"
    subprocess.run(command(tmp_path / "one", folder), check=True)
    small = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        lost = cluster.add_node(**small)
        environment = {**os.environ, "RAY_ADDRESS": cluster.address}
        wanted = command(out, folder, "--executor", "ray", "--tasks", "4")
        begun = subprocess.Popen(wanted, env=environment, stderr=subprocess.PIPE, text=True)
        while begun.poll() is None and not (out / "work/logs/1-gather/completions").exists():
            time.sleep(0.05)
        cluster.remove_node(lost, allow_graceful=False)
        said = begun.communicate(timeout=1200)[1]
    finally:
        cluster.shutdown()
    assert begun.returncode == 0, said
    assert content(out) == content(tmp_path / "one")
