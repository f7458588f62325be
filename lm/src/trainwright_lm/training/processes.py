"""One process, or several under torchrun: this process's role, collective operations, and the loss that they measure together."""

from __future__ import annotations

import contextlib
import gc
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from trainwright.errors import TrainwrightError, UsageError
from trainwright_lm.network.loss import computing, training_loss
from trainwright_lm.network.model import Transformer
from trainwright_lm.tokens.pack import Windows


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process and its group."""

    rank: int = 0
    count: int = 1
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        if self.count == 1:
            return flag
        return bool(self.total(torch.tensor(float(flag), device=self.device)))

    def given(self, value: Any) -> Any:
        """The first process's object."""
        held = [value]
        if self.count > 1:
            distributed.broadcast_object_list(held, src=0, device=self.device)
        return held[0]


@contextlib.contextmanager
def joined() -> Iterator[Processes]:
    """This process, connected to the others if torchrun started several, with its own GPU if there are any.

    An existing process group is used and not destroyed. When one process fails or is killed, all end, and one says why.

    Raises:
        UsageError: if torchrun started more processes on this machine than it has GPUs, or would restart those of several.
    """
    count, gpu = int(os.environ.get("WORLD_SIZE", "1")), torch.cuda.is_available()
    if count == 1:
        yield Processes(device=torch.device("cuda" if gpu else "cpu"))
        return
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if gpu else torch.device("cpu")
    _check_launch(torch.cuda.device_count() if gpu else 0)
    if gpu:
        torch.cuda.set_device(device)
    begins, store = not distributed.is_initialized(), None
    try:
        if begins:
            store, rank, _ = next(distributed.rendezvous("env://"))
            # torchrun keeps its store when it restarts all processes: what the first ones wrote there must not be read.
            store = distributed.PrefixStore(f"restart-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
            backend = "nccl" if gpu else "gloo"
            distributed.init_process_group(
                backend, store=store, rank=rank, world_size=count, device_id=device if gpu else None
            )
        yield Processes(rank=distributed.get_rank(), count=count, device=device)
        gc.collect()  # what still holds a group may abort or hang as the process ends
        distributed.barrier()
        if begins:
            distributed.destroy_process_group()  # not after an error: NCCL's would wait for the others
    except Exception as error:  # the training's, of any kind
        if not _speaks(store):
            raise SystemExit(2) from error
        lost = isinstance(error, distributed.DistError) or "gloo" in str(error).lower()
        if not (isinstance(error, RuntimeError) and lost):
            raise
        why = str(error).rpartition(".cc:")[2].partition("] ")[2].partition(". ")[0] or str(error).splitlines()[0]
        raise TrainwrightError(
            f"Process {os.environ.get('RANK', '0')} of {count} lost another one ({why}), so all end; torchrun says which one "
            "ended first. The same command, on as many processes as you like, resumes from the last checkpoint."
        ) from error


def _check_launch(gpus: int) -> None:
    """What torchrun was asked must be possible; the first process on a machine alone says if not.

    Args:
        gpus: of this machine; 0: the processors train.
    """
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    lacks = 0 < gpus < here
    # Each launcher counts its own restarts, and the processes of an uneven count wait for each other for ever.
    restarts = (
        int(os.environ.get("GROUP_WORLD_SIZE", "1")) > 1 and os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
    )
    if (lacks or restarts) and os.environ.get("LOCAL_RANK", "0") != "0":
        raise SystemExit(2)
    if restarts:
        raise UsageError(
            "--max-restarts must be 0 on several machines: after a failure, the same command resumes. Leave it out."
        )
    if lacks:
        raise UsageError(
            f"Each process must have a GPU of its own; torchrun started {here} on this machine, which has {gpus}. "
            f"Use --nproc_per_node {gpus}, or hide the GPUs to train on the processors (CUDA_VISIBLE_DEVICES=)."
        )


def _speaks(store: distributed.Store | None) -> bool:
    """Whether this process is the first to end in an error: it counts to 1 in the store that all meet in."""
    if store is None and not distributed.is_initialized():
        return True
    try:
        return int((store or distributed.distributed_c10d._get_default_store()).add("ended", 1)) == 1
    except RuntimeError:  # the machine with the store is gone
        return True


class SummedLoss(nn.Module):
    """A model as the wrappers need it: its forward pass returns the loss, a weighted sum of nats."""

    def __init__(self, model: Transformer, z_loss: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.z_loss = z_loss
        self.compiled = False

    def forward(self, inputs_BT: Tensor, targets_BT: Tensor, weights_B: Tensor | None = None) -> Tensor:
        z_loss = self.z_loss if self.training else 0.0
        return training_loss(self.model, inputs_BT, targets_BT, weights_B, z_loss, compiled=self.compiled)


def spread(loss: SummedLoss, layout: Literal["ddp", "fsdp"], processes: Processes) -> nn.Module:
    """The training loss: the module itself, or wrapped so that gradients are averaged over processes.

    "fsdp" turns the model's own parameters into shards, so build the optimizer afterwards.
    """
    if processes.count == 1:
        return loss
    if layout == "ddp":
        return DistributedDataParallel(loss)
    mesh = distributed.init_device_mesh(processes.device.type, (processes.count,))
    for layer in loss.model.layers:
        fully_shard(layer, mesh=mesh)
    sharded: nn.Module = fully_shard(loss, mesh=mesh)
    return sharded


@contextlib.contextmanager
def exchanging(module: nn.Module, now: bool) -> Iterator[None]:
    """A context for a forward and backward pass: exchange gradients now, or leave that to the update's last pass."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(now)
    if isinstance(module, DistributedDataParallel) and not now:
        with module.no_sync():
            yield
    else:
        yield


def whole(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Gather sharded tensors onto the CPU; all processes must call this together."""
    return {
        name: (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().cpu()
        for name, tensor in tensors.items()
    }


# Windows per forward pass; the loss is chunked, so the layers' activations dominate memory.
EVALUATED_AT_ONCE = 32


def mean_nats(
    loss: SummedLoss,
    windows: Windows,
    processes: Processes,
    precision: str = "fp32",
    *,
    at_once: int = EVALUATED_AT_ONCE,
    limit: int = 0,
) -> float:
    """Nats per token over all targets of all windows; NaN if there are none. Each process evaluates a part of them.

    Args:
        precision: fp32 or bf16, for the forward passes.
        at_once: windows per forward pass; affects only rounding.
        limit: use this many windows, evenly spaced; 0: all.
    """
    count = min(limit or len(windows), len(windows))
    chosen = np.arange(count) * len(windows) // max(count, 1)
    own = chosen[processes.rank :: processes.count]
    passes = math.ceil(len(chosen[:: processes.count]) / at_once)
    nats = torch.zeros((), dtype=torch.float64, device=processes.device)
    training = loss.training
    loss.eval()
    with torch.no_grad(), computing(precision, processes.device):
        for number in range(passes):
            indices = own[number * at_once : (number + 1) * at_once]
            # Sharded models exchange weights in a forward pass, so a process without windows left must take part too.
            rows = torch.from_numpy(windows.batch(indices if len(indices) else chosen[:1])).to(processes.device)
            summed = loss(rows[:, :-1], rows[:, 1:])
            nats += summed.double() if len(indices) else 0.0
    loss.train(training)
    tokens = len(chosen) * windows.context
    return processes.total(nats).item() / tokens if tokens else float("nan")
