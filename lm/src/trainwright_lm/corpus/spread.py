"""prepare's tasks on datatrove's executors: the processors of one machine, a Ray cluster, a Slurm cluster."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import shards
from trainwright_lm.corpus.dedup import BANDS, PERMUTATIONS
from trainwright_lm.corpus.steps import Job

Work = Callable[[Job, int, int], None]
"""Does one task: takes the job, the task's number and the number of tasks."""

INSTALL = 'pip install "trainwright[lm-cluster]"'
# Where an executor keeps what it has done, below OUT/work.
LOGS = "logs"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How the work is spread over processes and machines; the result does not depend on it."""

    executor: Literal["local", "ray", "slurm"]
    tasks: int = 0
    """Number of shards; 0: one per processor of this machine, only for `local`."""
    workers: int = 0
    """Tasks at a time; 0: one per processor for `local`, otherwise as many as there is room for."""
    memory: int = 2
    """Gigabytes to reserve per task on Ray and Slurm."""
    sbatch: Mapping[str, str] = field(default_factory=dict)
    """Options of sbatch: partition and time at least."""
    dry_run: bool = False
    """Print what would be submitted to Slurm."""

    @property
    def shards(self) -> int:
        return self.tasks or _processors()


@dataclass(frozen=True)
class Task:
    """A step of a pipeline of datatrove's, which calls it once per task."""

    work: Work
    job: Job

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        with _alone(self.job.work / "locks" / f"{self.work.__name__}-{rank}"):
            self.work(self.job, rank, world_size)

    def __repr__(self) -> str:
        return self.work.__name__


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Tasks that may run at the same time, after those of the stage before."""

    name: str
    tasks: int
    work: tuple[Work, ...]


def check(spread: Spread) -> None:
    """Raises UsageError if this spread is incomplete or its engine is not installed."""
    if spread.tasks < 0 or spread.workers < 0 or spread.memory < 1:
        raise UsageError("--tasks and --workers must not be negative, and --task-memory must be at least 1.")
    if spread.executor != "local" and not spread.tasks:
        raise UsageError(f"--executor {spread.executor} needs --tasks: into how many parts to cut the work.")
    if spread.executor == "slurm" and not {"partition", "time"} <= set(spread.sbatch):
        raise UsageError("--executor slurm needs --sbatch with partition and time, as in partition=cpu,time=24:00:00.")
    if spread.executor != "slurm" and (spread.sbatch or spread.dry_run):
        raise UsageError("--sbatch and --dry-run are for --executor slurm.")
    for module in ("datatrove", *(["ray"] if spread.executor == "ray" else [])):
        if importlib.util.find_spec(module) is None:
            raise UsageError(f"--executor {spread.executor} needs {module}: {INSTALL}")


def run(job: Job, spread: Spread, finish: Work) -> None:
    """Run all stages that are not done; with Slurm, submit them.

    Args:
        finish: What the last stage does after the tokens are there.

    Raises:
        ReadError: if tasks failed; the same call repeats only these.
    """
    stages = list(_stages(job, spread.shards, finish))
    if spread.executor == "slurm":
        with _submission(spread):
            before = None
            for stage in stages:
                before = _on_slurm(job, spread, stage, before)
            assert before is not None
            before.run()
        return
    if spread.executor == "ray":
        _connect()
    for stage in stages:
        if stage.tasks == 1:  # here, where a refusal is an exception and progress is shown
            for work in stage.work:
                work(job, 0, 1)
            continue
        executor = _executor(job, spread, stage)
        executor.run()
        if lost := executor.get_incomplete_ranks(skip_completed=True):
            raise ReadError(
                f"{len(lost)} of {stage.tasks} tasks of the stage {stage.name} failed; {_logs(job, stage)} says why. "
                "Run the same command again to repeat these alone."
            )


def _stages(job: Job, tasks: int, finish: Work) -> Iterator[_Stage]:
    one = {"tasks": 1}
    many = {"tasks": tasks}
    yield _Stage(name="1-gather", work=(shards.gather, shards.sign), **many)
    yield _Stage(name="2-link", work=(_find_equal, shards.link), tasks=shards.BUCKETS)
    yield _Stage(name="3-join-links", work=(shards.join_links,), **one)
    yield _Stage(name="4-judge", work=(shards.judge,), **many)
    yield _Stage(name="5-divide", work=(shards.divide,), **one)
    yield _Stage(name="6-prove", work=(shards.prove,), **many)
    yield _Stage(name="7-settle", work=(shards.settle,), **one)
    yield _Stage(name="8-pack", work=(shards.pack,), **many)
    yield _Stage(name="9-finish", work=(finish,), **one)


def _find_equal(job: Job, rank: int, tasks: int) -> None:
    """Find the documents with equal signatures in one bucket: datatrove merges the sorted files of all shards."""
    from datatrove.pipeline.dedup import MinhashConfig, MinhashDedupBuckets
    from datatrove.utils.hashing import HashConfig

    config = MinhashConfig(
        num_buckets=shards.BUCKETS, hashes_per_bucket=PERMUTATIONS // BANDS, hash_config=HashConfig(precision=32)
    )
    step = MinhashDedupBuckets(str(job.work / "signatures"), str(job.work / "duplicates"), config=config)
    step.run(None, rank, tasks)


def _executor(job: Job, spread: Spread, stage: _Stage) -> Any:
    shared = {
        "pipeline": [Task(work, job) for work in stage.work],
        "tasks": stage.tasks,
        "logging_dir": str(_logs(job, stage)),
    }
    if spread.executor == "local":
        from datatrove.executor import LocalPipelineExecutor

        class Quiet(LocalPipelineExecutor):
            """The first task says no more on the terminal than the others: how many are done, and what failed."""

            def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> Any:
                return LocalPipelineExecutor._run_for_rank(self, rank, 1, node_rank)

        return Quiet(**shared, workers=min(spread.workers or _processors(), stage.tasks))
    from datatrove.executor.ray import RayPipelineExecutor

    return RayPipelineExecutor(**shared, workers=spread.workers or -1, mem_per_cpu_gb=spread.memory)


def _on_slurm(job: Job, spread: Spread, stage: _Stage, before: Any) -> Any:
    from datatrove.executor import SlurmPipelineExecutor

    others = {name: value for name, value in spread.sbatch.items() if name not in ("partition", "time", "qos")}
    return SlurmPipelineExecutor(
        pipeline=[Task(work, job) for work in stage.work],
        tasks=stage.tasks,
        logging_dir=str(_logs(job, stage)),
        time=spread.sbatch["time"],
        partition=spread.sbatch["partition"],
        qos=spread.sbatch.get("qos", ""),
        sbatch_args=others,
        workers=spread.workers or -1,
        mem_per_cpu_gb=spread.memory,
        job_name=f"prepare-{stage.name}",
        # The jobs find this environment's programs first.
        env_command=f'export PATH="{Path(sys.executable).parent}:$PATH"',
        depends=before,
    )


@contextmanager
def _submission(spread: Spread) -> Iterator[None]:
    """Where nothing is to be submitted, datatrove's call of sbatch prints instead."""
    from datatrove.executor import slurm

    submit = slurm.launch_slurm_job

    def show(script: str, job_id: Callable[[str], str], *arguments: str) -> str:
        print(f"$ sbatch {' '.join(arguments)} <<'END'\n{script}END\n")
        return job_id("Submitted batch job JOB")

    slurm.launch_slurm_job = show if spread.dry_run else submit
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(
            f"--executor slurm needs sbatch on this machine; --dry-run prints the scripts: {error}"
        ) from error
    finally:
        slurm.launch_slurm_job = submit


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Wait for another try at the same task: a machine that was given up for lost may still be at it."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _connect() -> None:
    """Raises UsageError if no Ray cluster is running here."""
    import ray

    try:
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), ignore_reinit_error=True, log_to_driver=False)
    except ConnectionError as error:
        raise UsageError(
            "--executor ray needs a cluster: `ray start --head` on one machine and `ray start --address HEAD:6379` on the "
            f"others; or RAY_ADDRESS names one ({error})."
        ) from error


def _logs(job: Job, stage: _Stage) -> Path:
    return job.work / LOGS / stage.name


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
