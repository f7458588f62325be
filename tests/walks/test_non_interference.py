"""The walk leaves no trace: training after it is bit for bit the training without it."""

import contextlib
import hashlib
import io
import json
import logging
import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from torch import nn

import trainwright.adapters.trainer.adapter as adapter_module
from forked_runs import Runs
from trainwright.options import Options
from trainwright.walk.run import check_script

TESTS = Path(__file__).parents[1]
STEPS, FEW_UPDATES = 12, 4


# Dropout, batch norm, accumulation, own optimizer and schedule, iterable data, loose generators, bfloat16, a
# teacher, a model that the Trainer builds, and a script that keeps state everywhere.
TRAINED = [
    "healthy/convolutional_digits.py",
    *(
        pytest.param(f"healthy/{name}.py", marks=pytest.mark.slow)  # the process is the script's own: it cannot differ
        for name in (
            "tabular_loss_function",
            "sgd_with_batch_norm",
            "iterable_dataset",
            "augmented_pictures",
            "bfloat16",
            "distillation",
            "model_init",
            "two_towers",
        )
    ),
    "helpers/hoarder.py",
]
WALKED = [
    "healthy/convolutional_digits.py",
    "healthy/sgd_with_batch_norm.py",
    pytest.param("healthy/bfloat16.py", marks=pytest.mark.slow),
    pytest.param("healthy/distillation.py", marks=pytest.mark.slow),
    "healthy/model_init.py",
    pytest.param("healthy/sequence_to_sequence.py", marks=pytest.mark.slow),
    pytest.param("healthy/early_stopping.py", marks=pytest.mark.slow),
    pytest.param("healthy/gradient_checkpointing.py", marks=pytest.mark.slow),
    "helpers/hoarder.py",
    "rules/loss/label_out_of_range/bad.py",  # its head is widened in memory
    "rules/dataset/untokenized_dataset/bad.py",  # its data set is exchanged
]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """What writes each step's losses and weights to the file that TRACE names (tests/tracing) is in each child."""
    path = [str(TESTS / "tracing"), str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "TRACE": "set for each", "TRACE_STEPS": str(STEPS), "PYTHONPATH": os.pathsep.join(path),
        "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    with Runs(environment) as started:
        yield started


def traced(runs: Runs, folder: Path, *command: str) -> list[list]:
    """Losses, weights' digest and rates at every step of a script's training."""
    trace = folder / "trace.jsonl"
    trace.unlink(missing_ok=True)
    status, printed = runs.run(*command, folder=folder, variables={"TRACE": str(trace)})
    assert status == 0, printed[-3000:]
    return [json.loads(line) for line in trace.read_text().splitlines()]


# Whatever a walk had time for, the training behind it is the same.
@pytest.mark.parametrize("script", TRAINED, ids=lambda s: Path(s).stem)
def test_run_trains_bit_for_bit_as_python_does(script: str, tmp_path: Path, runs: Runs) -> None:
    plain = traced(runs, tmp_path, str(TESTS / script))
    walked = traced(runs, tmp_path, "-m", "trainwright", "run", "--budget", "4", str(TESTS / script))
    assert len(plain[0]) == STEPS
    assert walked == plain


@pytest.mark.parametrize("script", WALKED, ids=lambda s: "-".join(Path(s).parts[-2:]))
def test_check_puts_everything_back(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures: list[dict[str, object]] = []

    class Watched(adapter_module.HFTrainerAdapter):
        def __init__(self, trainer, frame, seen):
            pictures.append(picture(trainer))
            super().__init__(trainer, frame, seen)

        def put_back(self):
            super().put_back()
            pictures.append(picture(self.trainer))

    monkeypatch.setattr(adapter_module, "HFTrainerAdapter", Watched)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        check_script(TESTS / script, (), Options(budget=20, updates=FEW_UPDATES), strict=True)
    before, after = pictures
    changed = {k: (before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)}
    assert not changed


def picture(trainer) -> dict[str, object]:
    """Everything about a training that a walk could disturb, by name."""
    model = trainer.model
    seen: dict[str, object] = {
        "python random": random.getstate(),
        "numpy random": digest(np.random.get_state()[1]),
        "torch random": digest(torch.get_rng_state()),
        "gradients enabled": torch.is_grad_enabled(),
        "default dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "threads": torch.get_num_threads(),
        "log level": logging.getLogger("transformers").level,
        "warning filters": len(warnings.filters),
    }
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        grad = None if tensor.grad is None else digest(tensor.grad)
        seen[f"tensor {name}"] = (id(tensor), digest(tensor), tensor.requires_grad, grad)
    for name, module in model.named_modules():
        seen |= attributes(f"module {name}", module)
    for name in ("args", "state", "control", "accelerator", "data_collator", "train_dataset", "eval_dataset"):
        if hasattr(getattr(trainer, name), "__dict__"):
            seen |= attributes(name, getattr(trainer, name))
    seen |= attributes("trainer", trainer)
    seen |= attributes("callbacks", trainer.callback_handler)
    seen |= attributes("config", getattr(model, "config", trainer))
    for state in (AcceleratorState, PartialState, GradientState):
        seen |= {f"{state.__name__} {k}": simple(v) for k, v in state._shared_state.items()}
    optimizer, schedule = trainer.optimizer, trainer.lr_scheduler
    if optimizer is not None:
        seen |= attributes("optimizer", optimizer)
        seen["groups"] = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
        seen["held"] = [[id(p) for p in g["params"]] for g in optimizer.param_groups]
        seen["moments"] = [[(k, digest(v)) for k, v in s.items()] for s in optimizer.state.values()]
    if schedule is not None:
        seen["schedule"] = {k: simple(v) for k, v in schedule.__dict__.items()}
    return seen


def attributes(owner: str, value) -> dict[str, object]:
    return {f"{owner}.{k}": simple(v) for k, v in value.__dict__.items()}


def simple(value) -> object:
    """What is compared of an attribute: a plain value, an array's digest, else its identity and its members'."""
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    if hasattr(value, "__next__"):
        return "a stream"  # put back by giving again what was read; that training shows it is enough
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return id(value), digest(value)
    if isinstance(value, dict):
        return id(value), [(k if isinstance(k, (str, int)) else id(k), id(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, set)) and not isinstance(value, nn.Module):
        return id(value), [id(v) for v in value]
    return id(value)


def digest(value) -> object:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return value
