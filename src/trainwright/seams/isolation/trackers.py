"""Runs that a process began at its trackers before a check record nothing of it; their own queues are unchanged."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from trainwright.seams.isolation.tally import KeptAway

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
def untracked(replace: Callable[[Any, str, Any], None], tally: KeptAway) -> Iterator[None]:
    """Keep the loaded trackers from recording.

    Args:
        replace: replaces an attribute until the check ends.
    """
    for service, module, path, beginnings in _RECORDING:
        owner = getattr(sys.modules.get(module), path, None) if path else sys.modules.get(module)
        for name in dir(owner) if isinstance(owner, type) else beginnings if owner is not None else ():
            method = getattr(owner, name, None)
            if name.startswith(beginnings) and callable(method) and not isinstance(method, type):
                replace(owner, name, _counting(tally, service, method))
    summaries: Any = getattr(sys.modules.get("tensorflow.python.ops.summary_ops_v2"), "_summary_state", None)
    if summaries is not None:  # native code asks it whether to write
        replace(summaries, "is_recording", False)
    run: Any = getattr(sys.modules.get("wandb"), "run", None)
    step = getattr(run, "_step", None)  # which the run increments itself
    try:
        yield
    finally:
        if step is not None:
            with contextlib.suppress(AttributeError):
                run._step = step


def _counting(tally: KeptAway, service: str, original: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(original)
    def record(*args: Any, **kwargs: Any) -> None:
        tally.services.setdefault(service, "nothing recorded")

    return record
