"""What two processes under torchrun do for test_lm_processes.py: trainings into folders beside each other.

`lm_two.py DATA OUT`; each training of TRAININGS goes to OUT/NAME. "half" is stopped by a signal to the second process.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from lm_material import small_recipe

FINE = ("optimizer.name=adamw", "optimizer.learning_rate=5e-4", "run.save_every=0", "run.evaluate_every=6")
WEIGHTED = ('loss.key_tokens=["e","="]', "loss.key_weight=3")
MUON = "optimizer.name=muon"
TRAININGS = {
    "ddp": ("run.sample_every=12", "run.check=true"),
    "ddp-parts": ("data.micro_windows=2",),
    "ddp-weighted": ("data.micro_windows=1", *WEIGHTED),
    "fsdp": ("run.distributed=fsdp", "run.sample_every=12"),
    "fsdp-parts": ("run.distributed=fsdp", "data.micro_windows=1"),
    "ddp-muon": (MUON,),
    "fsdp-muon": ("run.distributed=fsdp", MUON),
}


def keeping_gradients(held: dict[str, torch.Tensor]) -> Any:
    """A take_update that keeps the first update's whole gradients."""
    from trainwright_lm.training.processes import whole
    from trainwright_lm.training.train import take_update

    def take(training: Any, update: int) -> Any:
        step = training.optimizer.step

        def kept() -> None:
            held.update(whole({n: p.grad for n, p in training.model.named_parameters()}))
            step()

        if not update:
            training.optimizer.step = kept
        told = take_update(training, update)
        training.optimizer.step = step
        return told

    return take


def main(data_folder: Path, out: Path) -> None:
    from trainwright_lm.tokens.prepared import open_data
    from trainwright_lm.training import train as module

    data, take_update = open_data(data_folder), module.take_update
    torch.distributed.init_process_group("gloo")  # once: torchrun's store does not allow a second one
    rank = torch.distributed.get_rank()
    for name, settings in TRAININGS.items():
        held: dict[str, torch.Tensor] = {}
        module.take_update = keeping_gradients(held)
        module.train(data, out / name, small_recipe(*FINE, *settings))
        if rank == 0:
            torch.save(held, out / f"{name}.gradients")

    def stopped(training: Any, update: int) -> Any:
        if rank == 1 and update == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return take_update(training, update)

    module.take_update = stopped
    outcome = module.train(data, out / "half", small_recipe(*FINE))
    assert (outcome.updates, outcome.signal) == (5, signal.SIGTERM), outcome
    module.take_update = take_update
    module.train(data, out / "half", small_recipe(*FINE, "run.distributed=fsdp"))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
