"""prepare's tasks on datatrove's executors: the processors of one machine, a Ray cluster, a Slurm cluster."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trainwright.errors import ReadError, UsageError
from trainwright_lm import progress
from trainwright_lm.atomic import locked

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
        return self.tasks or (progress.processors() if self.executor else 1)

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
        locks = self.job.work / "locks"
        locks.mkdir(exist_ok=True)
        # A machine that was given up for lost may still be at it.
        with locked(locks / f"{self.work.__name__}-{rank}", wait=True):
            self.work(self.job, rank, world_size)

    def __repr__(self) -> str:
        return self.work.__name__


class _Stage(NamedTuple):
    """Tasks that may run at the same time, after those of the stage before."""

    name: str
    does: str
    tasks: int
    work: Work


def run(job: Job, spread: Spread, finish: Work) -> None:
    """Run all stages that are not done: in this process, on an executor's; with Slurm, submit them.

    Args:
        finish: What the last stage does after the tokens are there.

    Raises:
        ReadError: if tasks failed; the same call repeats only these.
    """
    stages = _stages(spread.shards, finish, limited=job.options.max_bytes > 0)
    if spread.executor is None:
        for stage in stages:
            stage.work(job, 0, 1)
        return
    from loguru import logger

    logger.disable("datatrove")  # here; its tasks have a log each
    if spread.executor == "slurm":
        logs = job.work / "logs"
        with _submission(job, spread) as job:
            last: Any = None
            for stage in stages:
                last = _on_slurm(job, spread, stage, last, logs)
            last.run()
        return
    if spread.executor == "ray":
        _connect()
    with _processes(job, spread) if spread.executor == "local" else nullcontext() as pool:
        for stage in stages:
            begun = time.monotonic()
            if stage.tasks == 1:  # here, where a refusal is an exception and progress is shown
                stage.work(job, 0, 1)
            else:
                _run(job, spread, stage, pool)
            seconds = time.monotonic() - begun
            print(f"{stage.name}: {stage.does}; tasks: {stage.tasks:,}; {seconds:.0f} s", file=sys.stderr)


def _run(job: Job, spread: Spread, stage: _Stage, pool: ProcessPoolExecutor | None) -> None:
    """Run the tasks of a stage that are not done, in the pool or, without one, on Ray."""
    executor, logs = _executor(job, spread, stage), _logs(job, stage)
    if pool is None:
        executor.run()
        if lost := executor.get_incomplete_ranks(skip_completed=True):
            raise ReadError(
                f"{len(lost)} of {stage.tasks} tasks of the stage {stage.name} failed; {logs} says why. "
                "Run the same command again to repeat these alone."
            )
        return
    futures = [pool.submit(executor._run_for_rank, rank, 1) for rank in executor.get_incomplete_ranks()]
    try:
        with progress.stage(stage.name) as report:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                report(done / len(futures), f"{done:,} of {len(futures):,} tasks")
    except BrokenProcessPool as error:
        raise ReadError(
            f"A process of the stage {stage.name} was killed, probably because memory ran out; {logs.parent} may say more. "
            "Run the same command again to resume, with fewer --workers, each of which takes memory."
        ) from error


@contextmanager
def _processes(job: Job, spread: Spread) -> Iterator[ProcessPoolExecutor]:
    """Processes for tasks, which end when this one leaves the block or ends in any way."""
    context = multiprocessing.get_context("forkserver")
    alive, ours = context.Pipe(duplex=False)
    log = job.work / "logs" / "processes.log"
    log.parent.mkdir(exist_ok=True)
    pool = ProcessPoolExecutor(spread.workers or progress.processors(), context, _begin_process, (alive, log))
    # What processes inherit: until they begin, they write to the log, too; and the keyboard interrupts this process alone.
    before, terminal = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}), os.dup(2)
    try:
        with log.open("ab") as stream:
            os.dup2(stream.fileno(), 2)
        forkserver.ensure_running()
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield pool
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)


def _begin_process(alive: Connection, log: Path) -> None:
    """End this process when the other end of the connection closes; what it says goes to the log."""
    threading.Thread(target=lambda: alive.poll(None) and os._exit(1), daemon=True).start()
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)


def _stages(tasks: int, finish: Work, *, limited: bool = False) -> list[_Stage]:
    from trainwright_lm.corpus import steps

    limit = _Stage("1-limit", "keep what fits into --max-bytes", 1, steps.limit)
    return [
        _Stage("1-gather", "read and filter the sources", tasks, steps.gather),
        *([limit] if limited and tasks > 1 else []),
        _Stage("2-judge", "find the duplicates", 1, steps.judge),
        _Stage("3-divide", "choose what is held out", 1, steps.divide),
        _Stage("4-prove", "compare training with validation", tasks, steps.prove),
        _Stage("5-settle", "write the texts, train the tokenizer", 1, steps.settle),
        _Stage("6-pack", "write the tokens", tasks, steps.pack),
        _Stage("7-finish", "put the tokens together", 1, finish),
    ]


def _executor(job: Job, spread: Spread, stage: _Stage, **more: Any) -> Any:
    if spread.executor == "local":
        from datatrove.executor import LocalPipelineExecutor as Executor
    else:
        if spread.executor == "ray":
            from datatrove.executor.ray import RayPipelineExecutor as Executor
        else:
            from datatrove.executor import SlurmPipelineExecutor as Executor
        more |= {"workers": spread.workers or -1, "mem_per_cpu_gb": spread.task_memory}
    return Executor(pipeline=[Task(stage.work, job)], tasks=stage.tasks, logging_dir=str(_logs(job, stage)), **more)


def _on_slurm(job: Job, spread: Spread, stage: _Stage, before: Any, logs: Path) -> Any:
    """The stage as jobs, whose scripts name this folder of logs, quoted."""
    options = spread.sbatch_options
    jobs = _executor(
        job,
        spread,
        stage,
        time=options.pop("time"),
        partition=options.pop("partition"),
        qos=options.pop("qos", ""),
        sbatch_args=options,
        job_name=f"prepare-{stage.name}",
        # The jobs find this environment's programs first.
        env_command=f'export PATH="{Path(sys.executable).parent}:$PATH"',
        depends=before,
        job_id_retriever=partial(_kept, job.work / "jobs"),
    )
    written = partial(_quoted, jobs.get_launch_file_contents, str(job.work / "logs"), shlex.quote(str(logs)))
    jobs.get_launch_file_contents = written
    return jobs


def _quoted(write: Callable[..., str], here: str, named: str, *given: Any) -> str:
    return write(*given).replace(here, named)


def _kept(jobs: Path, said: str) -> str:
    """The number of the job that sbatch says it submitted, which is kept."""
    with jobs.open("a") as stream:
        stream.write(f"{said.split()[-1]}\n")
    return said.split()[-1]


def _shown(script: str, number: Callable[[str], str], *arguments: str) -> str:
    """In a dry run, in place of the submission: sbatch's arguments and the script."""
    print(f"$ sbatch {' '.join(arguments)} <<'END'\n{script}END\n")
    return "JOB"


@contextmanager
def _submission(job: Job, spread: Spread) -> Iterator[Job]:
    """No jobs in Slurm's queue; a dry run submits by printing, and the job it yields is in another folder."""
    from datatrove.executor import slurm

    logs, jobs, submit = job.work / "logs", job.work / "jobs", slurm.launch_slurm_job
    with tempfile.TemporaryDirectory() as folder:
        written = replace(job, out=Path(folder)) if spread.dry_run else job
        try:
            submitted = jobs.read_text().split() if jobs.exists() else []
            queue = ["squeue", "--me", "--noheader", "--format=%F"]
            queued = subprocess.check_output(queue, text=True).split() if submitted else []
            if left := " ".join(sorted({*submitted} & {*queued})):
                raise UsageError(
                    f"{job.out} must have no jobs in Slurm's queue when others are submitted; it has {left}. Wait for "
                    f"them; if tasks failed, end the jobs that wait for these first: scancel {left}"
                )
            if spread.dry_run:
                if logs.exists():
                    others = shutil.ignore_patterns("logs", "slurm_logs", "stats")
                    shutil.copytree(logs, written.work / "logs", ignore=others)
                slurm.launch_slurm_job = _shown
            yield written
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise UsageError(
                f"--executor slurm needs Slurm's programs here, and that they take the job; --dry-run prints it: {error}"
            ) from error
        finally:
            slurm.launch_slurm_job = submit


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
