"""Keeps trackers and the Hub away from a script that is only checked, from its first line on.

A check creates no runs, folders or repositories and asks for no keys; the script gets objects that accept every call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import wrapt

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.isolation.tally import KeptAway
from trainwright.seams.isolation.trackers import untracked
from trainwright.seams.listening.doors import replaced

# The trackers' own settings for sending and writing nothing.
_SETTINGS = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    "NEPTUNE_MODE": "debug",
    "COMET_LOGGING_CONSOLE": "CRITICAL",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "DO_NOT_TRACK": "1",
}
_HUB_CHANGES = (
    "create_commit", "upload_file", "upload_folder", "upload_large_folder", "delete_repo", "delete_file", "delete_files",
    "delete_folder", "delete_branch", "delete_tag", "create_branch", "create_tag", "move_repo", "update_repo_settings",
    "preupload_lfs_files", "create_discussion", "create_pull_request", "merge_pull_request", "comment_discussion",
    "super_squash_history", "create_collection", "add_collection_item", "add_space_secret", "add_space_variable",
    "request_space_hardware", "restart_space", "pause_space", "create_inference_endpoint",
)  # fmt: skip
_DISABLED = "disabled"

_now: _Offline | None = None


class _Offline:
    """Replacements in force during a check."""

    def __init__(self, tally: KeptAway) -> None:
        self.tally = tally
        self.stack = contextlib.ExitStack()
        self.store = ""

    def folder(self) -> str:
        """A folder for a tracker that cannot work without storage."""
        if not self.store:
            self.store = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="trainwright-"))
        return self.store

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute until the check ends; does nothing if there is none."""
        if hasattr(owner, name):
            self.stack.enter_context(replaced([(owner, name, value)]))

    def use(self, service: str) -> None:
        """Record that the script uses a tracker."""
        self.tally.services[service] = _DISABLED


@contextlib.contextmanager
def offline(tally: KeptAway, *, is_begun: bool) -> Iterator[None]:
    """While the context lasts, nothing is tracked and nothing goes to the Hub.

    Args:
        is_begun: this process may have begun runs at trackers before; they record nothing.
    """
    global _now
    before = {name: os.environ.get(name) for name in _SETTINGS}
    _now = _Offline(tally)
    os.environ.update(_SETTINGS)
    _hook()
    try:
        with _now.stack:
            for module in [one for one in _MODULES if one in sys.modules]:
                _patch(sys.modules[module])
            with untracked(_now.replace, tally) if is_begun else contextlib.nullcontext():
                yield
    finally:
        _now = None
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


@functools.cache
def _hook() -> None:
    for module in _MODULES:
        if module not in sys.modules:
            wrapt.register_post_import_hook(_imported, module)


def _imported(module: Any) -> None:
    if _now is not None:
        _patch(module)


def _instead(service: str, original: Callable[..., Any], value: Callable[..., Any]) -> Callable[..., Any]:
    """A function that replaces another during the check, even where a reference to it was stored."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _now is None:
            return original(*args, **kwargs)
        _now.use(service)
        return value(*args, **kwargs)

    return call


def _swap(service: str, owner: Any, name: str, value: Callable[..., Any]) -> None:
    """Make a function or method return something else."""
    assert _now is not None
    if hasattr(owner, name):
        call = _instead(service, getattr(owner, name), value)
        bound = isinstance(owner, type) and isinstance(inspect.getattr_static(owner, name), (classmethod, staticmethod))
        _now.replace(owner, name, staticmethod(call) if bound else call)


def _nothing(*args: Any, **kwargs: Any) -> Any:
    return Nothing()


def _none(*args: Any, **kwargs: Any) -> None:
    return None


def _patch(module: Any) -> None:
    """Apply a module's rows, and what it needs besides."""
    assert _now is not None
    for service, _, path, names, value in (row for row in _ANSWERS if row[1] == module.__name__):
        owner = getattr(module, path, None) if path else module
        for name in names:
            if isinstance(getattr(owner, name, None), type):
                _now.replace(owner, name, _stand_in_class(service))
            elif owner is not None:
                _swap(service, owner, name, value)
    if module.__name__ in _PATCHES:
        _PATCHES[module.__name__](module)


def _stand_in_class(service: str) -> type:
    class StandIn(Nothing):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if _now is not None:
                _now.use(service)

    return StandIn


# Weights & Biases


def _patch_wandb(module: Any) -> None:
    original, sweeps = module.init, dict[str, Any]()

    def init(*args: Any, **kwargs: Any) -> Any:
        kwargs = {**kwargs, "mode": "disabled"}
        if sweeps.get("config"):
            kwargs["config"] = {**sweeps["config"], **(kwargs.get("config") or {})}
        return original(*args, **kwargs)

    def sweep(config: Any = None, *args: Any, **kwargs: Any) -> str:
        parameters = config.get("parameters", {}) if isinstance(config, dict) else {}
        sweeps["config"] = {name: _first_value(given) for name, given in parameters.items()}
        return "disabled"

    def agent(sweep_id: Any = None, function: Callable[[], Any] | None = None, *args: Any, **kwargs: Any) -> None:
        if function is not None:
            function()

    _swap("W&B", module, "init", init)
    _swap("W&B", module, "login", lambda *args, **kwargs: True)
    _swap("W&B", module, "sweep", sweep)
    _swap("W&B", module, "agent", agent)


def _first_value(given: Any) -> Any:
    """One value of a sweep's parameter."""
    if not isinstance(given, dict):
        return given
    for name in ("value", "min"):
        if name in given:
            return given[name]
    values = given.get("values") or [None]
    return values[0]


# TensorBoard


def _patch_event_files(module: Any) -> None:
    """For torch and tensorboardX: a writer without a file."""
    assert _now is not None
    original = module.FileWriter

    def file_writer(*args: Any, **kwargs: Any) -> Any:
        if _now is None:
            return original(*args, **kwargs)
        _now.use("TensorBoard")
        return _NoFileWriter(next(iter((*args, *kwargs.values())), ""))

    _now.replace(module, "FileWriter", file_writer)


class _NoFileWriter(Nothing):
    def __init__(self, folder: Any) -> None:
        object.__setattr__(self, "_folder", str(folder))

    def get_logdir(self) -> str:
        """The folder that it would write to."""
        return str(object.__getattribute__(self, "_folder"))


def _patch_summaries(module: Any) -> None:
    """For TensorFlow."""
    for name in ("create_file_writer_v2", "create_file_writer"):
        _swap("TensorBoard", module, name, lambda *args, **kwargs: module.create_noop_writer())


# MLflow stores its runs in a folder of ours, so that a script's queries about them work


def _patch_mlflow(module: Any) -> None:
    assert _now is not None
    store = (Path(_now.folder()) / "mlruns").as_uri()
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    _now.stack.callback(os.environ.pop, "MLFLOW_ALLOW_FILE_STORE", None)
    before = (module.get_tracking_uri(), module.get_registry_uri()) if module.is_tracking_uri_set() else None
    module.set_tracking_uri(store)
    _now.stack.callback(
        _mlflow_as_before, module, module.set_tracking_uri, before, os.environ.get("MLFLOW_TRACKING_URI")
    )
    for name in ("set_tracking_uri", "set_registry_uri", "login"):
        _swap("MLflow", module, name, lambda *args, **kwargs: None)
    _swap("MLflow", module, "start_run", module.start_run)
    original = module.MlflowClient.__init__

    def init(self: Any, tracking_uri: Any = None, registry_uri: Any = None, *args: Any, **kwargs: Any) -> None:
        passed_on(original, self, store, store)

    _now.replace(module.MlflowClient, "__init__", _instead("MLflow", original, init))


MOST_RUNS = 32


def _mlflow_as_before(module: Any, put: Callable[..., Any], before: Any, variable: str | None) -> None:
    with contextlib.suppress(Exception):  # MLflow's own: the run no longer exists
        for _ in range(MOST_RUNS):  # one run may lie within another
            if module.active_run() is None:
                break
            module.end_run()
    put(before[0] if before else "")
    os.environ.pop("MLFLOW_TRACKING_URI", None) if variable is None else os.environ.update(MLFLOW_TRACKING_URI=variable)


# Optuna stores its studies in memory


def _patch_optuna(module: Any) -> None:
    kept: dict[Any, Any] = {}
    study = module.study
    create, load = study.create_study, study.load_study

    def create_study(*args: Any, **kwargs: Any) -> Any:
        storage = kwargs.pop("storage", args[0] if args else None)
        name = kwargs.get("study_name")
        if storage is not None and name in kept and kwargs.get("load_if_exists"):
            return kept[name]
        kwargs.pop("load_if_exists", None)
        kept[name] = made = create(**kwargs)
        return made

    def load_study(*args: Any, **kwargs: Any) -> Any:
        name = kwargs.get("study_name", args[0] if args else None)
        if name not in kept:
            memory = module.storages.InMemoryStorage()
            real = load(*args, **kwargs)
            module.copy_study(from_study_name=real.study_name, from_storage=real._storage, to_storage=memory)
            kept[name] = load(
                study_name=real.study_name, storage=memory, sampler=kwargs.get("sampler"), pruner=kwargs.get("pruner")
            )
        return kept[name]

    for owner in (study, getattr(study, "study", None), module):
        if owner is not None:
            _swap("Optuna's storage", owner, "create_study", create_study)
            _swap("Optuna's storage", owner, "load_study", load_study)


# The Hub


def _patch_hub(module: Any) -> None:
    def create_repo(self: Any, repo_id: str, *args: Any, **kwargs: Any) -> Any:
        assert _now is not None
        _now.tally.uploads.add(repo_id)
        kind = {"dataset": "datasets/", "space": "spaces/"}.get(kwargs.get("repo_type") or "", "")
        owner = "" if "/" in repo_id else "user/"
        return module.RepoUrl(f"{self.endpoint}/{kind}{owner}{repo_id}", endpoint=self.endpoint)

    def change(*args: Any, run_as_future: bool = False, **kwargs: Any) -> Any:
        if not run_as_future:
            return Nothing()
        done: Future[Any] = Future()
        done.set_result(Nothing())
        return done

    def whoami(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"type": "user", "id": "", "name": "user", "fullname": "user", "orgs": [], "auth": {}}

    made: dict[str, Callable[..., Any]] = {"create_repo": create_repo, "whoami": whoami}
    made |= dict.fromkeys(_HUB_CHANGES, change)
    assert _now is not None
    for name, value in made.items():
        _swap("Hugging Face Hub", module.HfApi, name, value)
        if hasattr(module, name) and hasattr(module.HfApi, name):
            _now.replace(module, name, getattr(module.api, name))


# Classes and functions that begin a run, save or upload: service, module, owner in it ("" for the module itself), names, and
# what answers for a function; for a class, one does that accepts every call.
_ANSWERS: tuple[tuple[str, str, str, tuple[str, ...], Callable[..., Any]], ...] = (
    ("trackio", "trackio", "", ("init", "log", "log_system", "finish", "alert", "save", "log_artifact", "show", "sync",
                                "freeze", "delete_project"), _nothing),
    ("Comet", "comet_ml", "", ("Experiment", "CometExperiment", "OfflineExperiment", "ExistingExperiment",
                               "ExistingOfflineExperiment", "start", "init", "login", "get_global_experiment",
                               "get_running_experiment"), _nothing),
    ("Neptune", "neptune", "", ("init_run", "init_project", "init_model", "init_model_version", "init", "Run",
                                "Project", "Model", "ModelVersion"), _nothing),
    ("Neptune", "neptune_scale", "", ("Run",), _nothing),
    ("ClearML", "clearml", "Task", ("init", "create", "current_task", "set_credentials", "force_requirements_env_freeze",
                                    "add_requirements"), _nothing),
    ("ClearML", "clearml", "Logger", ("current_logger",), _nothing),
    ("Aim", "aim", "", ("Run",), _nothing),
    *(("TensorBoard", module, "SummaryWriter", ("add_embedding", "add_hparams", "export_scalars_to_json"), _none)
      for module in ("torch.utils.tensorboard.writer", "tensorboardX.writer")),
    ("TensorBoard", "accelerate.tracking", "TensorBoardTracker", ("store_init_configuration",), _none),
    # Lightning's logger creates a folder before there is a writer.
    *(("TensorBoard", f"{package}.loggers.tensorboard", "", ("get_filesystem",), _nothing)
      for package in ("lightning.fabric", "lightning_fabric")),
    ("Hugging Face Hub", "huggingface_hub._login", "", ("login", "logout", "notebook_login", "interpreter_login", "auth_switch"),
     _none),
    ("Hugging Face Hub", "huggingface_hub._commit_scheduler", "", ("CommitScheduler",), _nothing),
    ("Hugging Face Hub", "datasets.arrow_dataset", "Dataset", ("push_to_hub",), _nothing),
    ("Hugging Face Hub", "datasets.dataset_dict", "DatasetDict", ("push_to_hub",), _nothing),
)  # fmt: skip
_PATCHES: dict[str, Callable[[Any], None]] = {
    "wandb": _patch_wandb,
    "torch.utils.tensorboard.writer": _patch_event_files,
    "tensorboardX.writer": _patch_event_files,
    "tensorflow.python.ops.summary_ops_v2": _patch_summaries,
    "mlflow": _patch_mlflow,
    "optuna": _patch_optuna,
    "huggingface_hub.hf_api": _patch_hub,
}
_MODULES = (*dict.fromkeys([*(row[1] for row in _ANSWERS), *_PATCHES]),)
