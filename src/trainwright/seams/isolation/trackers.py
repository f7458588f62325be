"""Disables a script's trackers while the check runs its code; their own queues are unchanged."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from trainwright.seams.isolation.tally import Tally

# Recording methods of trackers: module, owner in it ("" for the module itself), prefixes of their names.
_RECORDING: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("W&B", "wandb.sdk.interface.interface", "InterfaceBase", ("publish_",)),
    ("W&B", "wandb.sdk.wandb_run", "Run", ("log", "save", "alert", "finish", "define_metric", "watch", "link_", "upsert_")),
    ("TensorBoard", "torch.utils.tensorboard.writer", "SummaryWriter", ("add_",)),
    ("TensorBoard", "tensorboardX.writer", "SummaryWriter", ("add_", "export_")),
    ("MLflow", "mlflow.tracking.client", "MlflowClient", ("log_", "set_", "delete_", "update_", "create_registered_",
                                                          "create_model_")),
    ("MLflow", "mlflow", "", ("end_run",)),
    ("trackio", "trackio.run", "Run", ("log", "alert", "finish", "save")),
    ("Comet", "comet_ml", "Experiment", ("log_", "set_", "send_", "add_tag", "end")),
    ("Comet", "comet_ml", "CometExperiment", ("log_", "set_", "send_", "add_tag", "end")),
    ("Neptune", "neptune", "Run", ("__setitem__", "assign", "stop", "wait", "sync")),
    ("Neptune", "neptune.handler", "Handler", ("__setitem__", "append", "extend", "log", "upload", "assign", "add")),
    ("Neptune", "neptune_scale", "Run", ("log_", "assign_", "add_tags", "close")),
    ("ClearML", "clearml", "Logger", ("report_", "flush")),
    ("ClearML", "clearml", "Task", ("upload_artifact", "set_", "add_tags", "close", "mark_", "register_artifact")),
    ("Aim", "aim", "Run", ("track", "__setitem__", "set", "log_", "add_tag", "close")),
    ("Optuna's storage", "optuna.trial", "Trial", ("report", "set_user_attr", "set_system_attr")),
    ("Optuna's storage", "optuna.study", "Study", ("tell", "enqueue_trial", "set_user_attr", "add_trial")),
)  # fmt: skip


@contextlib.contextmanager
def untracked(tally: Tally) -> Iterator[None]:
    """Keep the loaded trackers from recording."""
    with contextlib.ExitStack() as stack:
        for service, module, path, beginnings in _RECORDING:
            owner = getattr(sys.modules.get(module), path, None) if path else sys.modules.get(module)
            for name in _methods(owner, beginnings):
                stack.enter_context(_replaced(owner, name, _counting(tally, service, getattr(owner, name))))
        stack.enter_context(_numbered_as_before())
        stack.enter_context(_no_summaries())
        yield


def _methods(owner: Any, beginnings: tuple[str, ...]) -> list[str]:
    """The names of an owner's functions, including inherited ones."""
    if owner is None:
        return []
    names = dir(owner) if isinstance(owner, type) else list(beginnings)
    return [
        n
        for n in names
        if n.startswith(beginnings) and callable(getattr(owner, n, None)) and not isinstance(getattr(owner, n), type)
    ]


def _counting(tally: Tally, service: str, original: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(original)
    def record(*args: Any, **kwargs: Any) -> None:
        tally.services.setdefault(service, "nothing recorded")

    return record


@contextlib.contextmanager
def _numbered_as_before() -> Iterator[None]:
    """Preserve a W&B run's step count, which the run increments itself."""
    run: Any = getattr(sys.modules.get("wandb"), "run", None)
    step = getattr(run, "_step", None)
    try:
        yield
    finally:
        if step is not None:
            with contextlib.suppress(AttributeError):
                run._step = step


@contextlib.contextmanager
def _no_summaries() -> Iterator[None]:
    """Disable TensorFlow's summaries, whose native code first asks whether to write."""
    state: Any = getattr(sys.modules.get("tensorflow.python.ops.summary_ops_v2"), "_summary_state", None)
    if state is None:
        yield
        return
    before, state.is_recording = state.is_recording, False
    try:
        yield
    finally:
        state.is_recording = before


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
