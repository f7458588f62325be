"""prepare's tasks on datatrove's executors: the processors of one machine, a Ray cluster, a Slurm cluster."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trainwright.errors import ReadError, UsageError

if TYPE_CHECKING:
    from trainwright_lm.corpus.options import PrepareOptions
    from trainwright_lm.corpus.steps import Job

Work = Callable[["Job", int, int], None]
"""Does one task: takes the job, the task's number and the number of tasks."""

INSTALL = 'pip install "trainwright[lm-cluster]"'


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where the work is done; the prepared data are the same."""

    executor: Literal["local", "ray", "slurm"] | None = None
    """Cut the work into tasks, which run on the processors of this machine (local), on the Ray cluster that runs here or
    that RAY_ADDRESS names, or on a Slurm cluster. All machines must see --out. Default: one process."""
    tasks: int = 0
    """Number of parts to cut the sources into. Default for local: one per processor."""
    workers: int = 0
    """Tasks at a time. Default: one per processor for local, all that fit for the others."""
    task_memory: int = 2
    """Gigabytes to reserve for each task on Ray and Slurm."""
    sbatch: str = ""
    """Options of sbatch, as in partition=cpu,time=24:00:00,account=me; partition and time are needed."""
    dry_run: bool = False
    """Print what --executor slurm would submit, and submit nothing."""

    @property
    def shards(self) -> int:
        return self.tasks or (_processors() if self.executor else 0)

    @property
    def sbatch_options(self) -> dict[str, str]:
        pairs = (word.partition("=") for word in self.sbatch.split(",") if word.strip())
        return {name.strip().lstrip("-"): value.strip() for name, _, value in pairs}

    def check(self, options: PrepareOptions) -> None:
        """Raises UsageError if this is incomplete, does not fit the options, or its engine is not installed."""
        slurm = self.executor == "slurm"
        if self.tasks < 0 or self.workers < 0 or self.task_memory < 1:
            raise UsageError("--tasks and --workers must not be negative, and --task-memory must be at least 1.")
        if (self.executor is None and self != ONE_PROCESS) or (not slurm and (self.sbatch or self.dry_run)):
            raise UsageError("--tasks, --workers and --task-memory need --executor; --sbatch and --dry-run need slurm.")
        if self.executor in ("ray", "slurm") and not self.tasks:
            raise UsageError(f"--executor {self.executor} needs --tasks: into how many parts to cut the work.")
        if slurm and not {"partition", "time"} <= self.sbatch_options.keys():
            raise UsageError("--executor slurm needs --sbatch, with partition=NAME,time=24:00:00 at least.")
        if self.executor and options.max_group_bytes:
            raise UsageError("--max-group-bytes takes a group's first files in order: leave out --executor.")
        for module in {None: [], "ray": ["datatrove", "ray"]}.get(self.executor, ["datatrove"]):
            if importlib.util.find_spec(module) is None:
                raise UsageError(f"--executor {self.executor} needs {module}: {INSTALL}")


ONE_PROCESS = Spread()


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


class _Stage(NamedTuple):
    """Tasks that may run at the same time, after those of the stage before."""

    name: str
    tasks: int
    work: tuple[Work, ...]


def run(job: Job, spread: Spread, finish: Work) -> None:
    """Run all stages that are not done; with Slurm, submit them.

    Args:
        finish: What the last stage does after the tokens are there.

    Raises:
        ReadError: if tasks failed; the same call repeats only these.
    """
    stages = _stages(spread.shards, finish, limited=job.options.max_bytes > 0)
    if spread.executor == "slurm":
        with _submission(spread):
            last: Any = None
            for stage in stages:
                last = _on_slurm(job, spread, stage, last)
            last.run()
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


def _stages(tasks: int, finish: Work, *, limited: bool = False) -> list[_Stage]:
    from trainwright_lm.corpus import shards

    gather = [_Stage("1-gather", tasks, (shards.gather, shards.sign))]
    if limited:
        limit, sign = _Stage("1-limit", 1, (shards.limit,)), _Stage("1-sign", tasks, (shards.sign,))
        gather = [_Stage("1-gather", tasks, (shards.gather,)), limit, sign]
    return [
        *gather,
        _Stage("2-link", shards.BUCKETS, (_find_equal, shards.link)),
        _Stage("3-join-links", 1, (shards.join_links,)),
        _Stage("4-judge", tasks, (shards.judge,)),
        _Stage("5-divide", 1, (shards.divide,)),
        _Stage("6-prove", tasks, (shards.prove,)),
        _Stage("7-settle", 1, (shards.settle,)),
        _Stage("8-pack", tasks, (shards.pack,)),
        _Stage("9-finish", 1, (finish,)),
    ]


def _find_equal(job: Job, rank: int, tasks: int) -> None:
    """Find the documents with equal signatures in one bucket: datatrove merges the sorted files of all shards."""
    from datatrove.pipeline.dedup import MinhashConfig, MinhashDedupBuckets
    from datatrove.utils.hashing import HashConfig

    from trainwright_lm.corpus.shards import BUCKETS, WIDTH

    config = MinhashConfig(num_buckets=BUCKETS, hashes_per_bucket=WIDTH, hash_config=HashConfig(precision=32))
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

    return RayPipelineExecutor(**shared, workers=spread.workers or -1, mem_per_cpu_gb=spread.task_memory)


def _on_slurm(job: Job, spread: Spread, stage: _Stage, before: Any) -> Any:
    from datatrove.executor import SlurmPipelineExecutor

    options = spread.sbatch_options
    return SlurmPipelineExecutor(
        pipeline=[Task(work, job) for work in stage.work],
        tasks=stage.tasks,
        logging_dir=str(_logs(job, stage)),
        time=options.pop("time"),
        partition=options.pop("partition"),
        qos=options.pop("qos", ""),
        sbatch_args=options,
        workers=spread.workers or -1,
        mem_per_cpu_gb=spread.task_memory,
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
    return job.work / "logs" / stage.name


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
