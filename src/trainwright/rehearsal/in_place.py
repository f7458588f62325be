"""A run in this process, where it may not fork: what watchers have replaced is put back, and what the run changes of the objects
is its caller's to put back."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from trainwright.rehearsal.request import Request, Work
from trainwright.rehearsal.run import TIME_OVER, run_script
from trainwright.seams.intercept import install
from trainwright.seams.state.snapshot import is_accelerated

# Where watchers put functions of theirs, and the hooks that they add; what else they replace is idle once the run is over.
_REPLACED = ("copy", "torch", "torch.nn.functional", "torch.autograd", "torch.func", "torch.jit", "logging.Logger",
             "torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer", "torch.optim.lr_scheduler.LRScheduler",
             "torch.amp.GradScaler", "torch.utils.data.dataloader._BaseDataLoaderIter", "lightning.pytorch.Trainer",
             "lightning.pytorch.LightningModule", "tensorflow.GradientTape",
             "tensorflow.python.eager.polymorphic_function.polymorphic_function.Function",
             # The stand-in for a GPU.
             *(f"torch.{name}" for name in ("cuda", "cuda.nvtx", "cuda.profiler", "mps", "backends.mps", "xpu", "accelerator",
               "utils._device.DeviceContext", "amp.autocast_mode.autocast", "cuda.amp.GradScaler", "distributed",
               "nn.parallel.DistributedDataParallel", "nn.DataParallel", "distributed.distributed_c10d",
               "utils.data.dataloader._SingleProcessDataLoaderIter",
               "utils.data.dataloader._MultiProcessingDataLoaderIter")))  # fmt: skip
# The same of each Keras, with all classes of its metrics.
_REPLACED_OF_KERAS = ("Model", "losses.Loss", "models", "saving", "optimizers.Optimizer", "metrics")
_HOOKED = ("torch.nn.modules.module", "torch.optim.optimizer")


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
    with _replaced(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        progress = os.open(request.progress, os.O_RDWR | os.O_CREAT)
        try:
            with request.record.open("wb") as record:
                run_script(request, None, record, progress, work)
        finally:
            os.close(progress)
            signal.signal(TIME_OVER, handler)


@contextlib.contextmanager
def _replaced() -> Iterator[None]:
    hooks = [value for m in _named(_HOOKED) for name, value in vars(m).items() if name.startswith("_global_")]
    kept = [(hook, dict(hook)) for hook in hooks if isinstance(hook, dict)]
    own = _named(tuple(f"{keras}.{name}" for keras in ("keras", "tf_keras") for name in _REPLACED_OF_KERAS))
    owners = [
        *_named(_REPLACED),
        *own,
        *(base for kind in own if isinstance(kind, type) for base in kind.__mro__[1:-1]),
    ]
    owners += [k for m in own if m.__name__.endswith(".metrics") for k in vars(m).values() if isinstance(k, type)]
    attributes = [(owner, dict(vars(owner))) for owner in owners]
    try:
        yield
    finally:
        for hook, before in kept:
            hook.clear()
            hook.update(before)
        for owner, values in attributes:
            for name, value in dict(vars(owner)).items():
                if name not in values and isinstance(owner, type):  # inherited before; a module has imported it
                    delattr(owner, name)
                elif name in values and values[name] is not value:
                    setattr(owner, name, values[name])


def _named(names: tuple[str, ...]) -> list[Any]:
    """Those modules and classes that are imported."""
    found = []
    for name in names:
        module, _, last = name.rpartition(".")
        found.append(sys.modules.get(name) or getattr(sys.modules.get(module), last, None))
    return [one for one in found if one is not None]
