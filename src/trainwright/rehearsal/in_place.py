"""A run in this process, where it may not fork: what watchers have replaced is put back, and what the run changes of the objects
is its caller's to put back."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys

from trainwright.rehearsal.request import Request, Work
from trainwright.rehearsal.run import TIME_OVER, run_script
from trainwright.seams.intercept import install
from trainwright.seams.listening.doors import standing
from trainwright.seams.state.snapshot import is_accelerated


def may_fork() -> bool:
    """Whether a fork of this process can compute: torch's threads for an accelerator do not outlive it, nor does its memory."""
    torch = sys.modules.get("torch")
    return sys.platform.startswith("linux") and not (torch is not None and is_accelerated(torch))


def has_computed_elsewhere() -> bool:
    """Whether TensorFlow or JAX has computed in this process: a fork cannot go on with that."""
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    backends = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None)
    return bool(backends) or bool(getattr(context, "_initialized", False))


def run_in_place(request: Request, work: Work) -> None:
    """Do what a request says in this process."""
    install()  # stays
    handler = signal.getsignal(TIME_OVER)
    with (
        contextlib.ExitStack() as run,
        standing(run),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        progress = os.open(request.progress, os.O_RDWR | os.O_CREAT)
        try:
            with request.record.open("wb") as record:
                run_script(request, None, record, progress, work)
        finally:
            os.close(progress)
            signal.signal(TIME_OVER, handler)
