"""TW260 unpicklable-workers: the loader's workers are new processes and cannot start.

Why it matters: Training stops before its first batch, with an error that comes from pickle or from a worker process.
Where processes are forked, as on Linux by default before Python 3.14, the same script works.
Evidence: The start method, and the part of the loader that pickle refuses; or a script that trains whenever it is
imported, as each spawned worker does.
Error: `Can't pickle local object`
Error: `DataLoader worker (pid(s) …) exited unexpectedly`
Error: `An attempt has been made to start a new process before the`
Fix (manual): Define functions and classes at the top level of a module; open files and create locks in the worker; put
what the script runs into `if __name__ == "__main__":`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, SetupFacts, SpawnedWorkers


@rule("TW260", Severity.ERROR, raises=False, foretells=Fate.STOPS)
def unpicklable_workers(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Workers that would get a copy of the loader's parts, one of which cannot be copied, or run the script again."""
    workers = batch.workers
    if workers is None:
        return
    started = f"the loader's {workers.count} workers are new processes (start method {workers.method})"
    where = workers.where or setup.place(Role.LOADER, Role.TRAIN_DATASET, Role.ARGUMENTS, Role.TRAINER)
    if workers.unguarded:
        yield Finding(
            message=f'{started} and import the script, which trains again: it has no `if __name__ == "__main__":`',
            measured={"workers": workers.count, "start_method": workers.method},
            where=where,
            proof=Proof("training starts at the top level of the script, which never looks at __name__"),
            fix=Fix(does='put everything that runs into a function, and call it under if __name__ == "__main__":'),
        )
        return
    yield Finding(
        message=f"{started} and get a pickled copy of {workers.part}, but it is {workers.kind} and cannot be pickled",
        measured={"workers": workers.count, "start_method": workers.method, "part": workers.part},
        where=where,
        proof=Proof(f"pickling it raised {workers.error}"[:300]),
        fix=Fix(does=_advice(workers)),
    )


def _advice(workers: SpawnedWorkers) -> str:
    if workers.is_code:
        return "define it at the top level of a module with def or class, not inside a function or as a lambda"
    return f"create {workers.part} in the worker, when it is first used, or read without workers (0)"
