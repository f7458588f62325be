"""Starts a training: in a new folder, or from the state of the same run in an existing folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from trainwright.errors import UsageError
from trainwright_lm.atomic import is_seen
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs.checkpoint import Checkpoint, State
from trainwright_lm.runs.folder import CHECKPOINTS, LOG, begin_run, is_run, read_manifest, read_recipe
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training import log as logs
from trainwright_lm.training.processes import Processes

# Settings that may change when a run resumes. They do not affect the weights or the logged training, except that
# precision, threads, compile and micro_windows alter the last digits, and changing those is reported.
FREE = {
    "run.precision", "run.threads", "run.compile", "data.micro_windows", "run.keep", "run.sinks", "run.check",
    "run.save_every", "run.sample_every", "run.prompts", "run.distributed", "run.common_disk",
}  # fmt: skip


def opened(
    data: PreparedData,
    folder: Path,
    recipe: Recipe,
    resume: bool | None,
    processes: Processes,
    say: Callable[[str], None],
) -> Checkpoint | None:
    """The checkpoint to resume from, in all processes; None: start from the beginning. Claims the folder for this run.

    Args:
        resume: True: a run must exist; False: an existing run is removed; None: resume if there is one.

    Raises:
        UsageError: if the folder has another run, its state does not allow the request, or the machines do not share it.
        ReadError: if the run has no complete checkpoint.
    """
    newest = (checkpoints.steps(folder / CHECKPOINTS) or [0])[-1]
    if processes.highest(newest) > processes.given(newest) and resume is not False:
        raise UsageError(
            f"Of the machines, that of process 0 must hold the run: another one has a later checkpoint in {folder}. Start "
            "torchrun with --node-rank 0 there, or remove that folder."
        )
    held = _opened(data, folder, recipe, resume, say) if processes.first else None
    if not recipe.run.common_disk:
        sent: Checkpoint | None = processes.given(held)
        return sent
    update: int = processes.given(held.state.update if held else -1)
    if processes.any(not is_seen(lambda: is_run(folder))):
        raise UsageError(
            f"All machines must see {folder}, where process 0 keeps the run; one does not. Use a folder that they share, or "
            "--set run.common_disk=false."
        )
    if update < 0 or held is not None:
        return held
    return checkpoints.load(checkpoints.step_folder(folder / CHECKPOINTS, update))


def _opened(
    data: PreparedData, folder: Path, recipe: Recipe, resume: bool | None, say: Callable[[str], None]
) -> Checkpoint | None:
    if not is_run(folder):
        if resume:
            raise UsageError(
                f"--resume needs an existing run; there is none in {folder}. Leave out --resume to begin one."
            )
        begin_run(folder, recipe, data.tokenizer, _manifest(data))
        return None
    # Without a checkpoint nothing was trained, so the recipe may be replaced, for example after it was rejected.
    if resume is False or not checkpoints.steps(folder / CHECKPOINTS):
        begin_run(folder, recipe, data.tokenizer, _manifest(data), anew=True)
        return None
    _check_same(folder, recipe, data)
    print_of_data = str(data.manifest["fingerprint"])
    held = checkpoints.newest_whole(folder / CHECKPOINTS, lambda s: _unlike(s, recipe, print_of_data), say)
    if held is None:
        return None
    logs.cut(folder / LOG, held.state.update)
    if held.state.update and not held.optimizer:
        raise UsageError(
            f"The run in {folder} was imported without an optimizer's state, so its training cannot be resumed. "
            "You can use and export it. Choose another --out to train."
        )
    return held


def first_difference(begun: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first relevant setting that differs between two recipes' tables, with its values; "" if none does."""
    for section, settings in now.items():
        for key, value in settings.items():
            name, before = f"{section}.{key}", begun.get(section, {}).get(key)
            if name not in FREE and before != value:
                return f"{name} was {before!r} and is now {value!r}"
    return ""


def surroundings(state: State, now: State) -> list[str]:
    """The changes since the checkpoint that alter the last digits from here on."""

    def setting(section: str, name: str, default: Any) -> tuple[Any, Any]:
        was, will = (one.recipe[section].get(name, default) for one in (state, now))
        return was, will

    muon, several = now.recipe["optimizer"]["name"] == "muon", max(state.processes, now.processes) > 1
    pairs: list[tuple[str, bool, tuple[Any, Any]]] = [
        ("precision changes", True, (state.precision, now.precision)),
        ("precision of Muon's products changes", muon, (state.muon_precision, now.muon_precision)),
        ("threads change", bool(state.threads), (state.threads, now.threads)),
        ("device changes", bool(state.device), (state.device, now.device)),
        ("data.micro_windows changes", True, setting("data", "micro_windows", 0)),
        ("processes change", True, (state.processes, now.processes)),
        ("run.distributed changes", several, setting("run", "distributed", "ddp")),
        *((f"{name} changes", True, (state.versions.get(name, own), own)) for name, own in now.versions.items()),
    ]
    told = [f"{what} from {was} to {will}" for what, counts, (was, will) in pairs if counts and was != will]
    if state.compiled != now.compiled:
        told.append(f"layers and loss are {'' if now.compiled else 'no longer '}compiled")
    return told


def versions() -> dict[str, str]:
    """The package versions that determine the last digits of results."""
    return {"torch": str(torch.__version__)}


def _check_same(folder: Path, recipe: Recipe, data: PreparedData) -> None:
    way_out = "Use the original value, choose another --out, or start over with --restart."
    if difference := first_difference(as_tables(read_recipe(folder)), as_tables(recipe)):
        raise UsageError(f"The run in {folder} must keep its recipe, but {difference}. {way_out}")
    before, now = read_manifest(folder).get("fingerprint"), data.manifest["fingerprint"]
    if before != now:
        raise UsageError(
            f"The run in {folder} must keep its data, but its fingerprint was {before}, and that of {data.folder} is {now}. {way_out}"
        )


def _unlike(state: State, recipe: Recipe, data: str) -> str:
    """Why a checkpoint does not belong to this run; "" if it does."""
    if difference := first_difference(state.recipe, as_tables(recipe)):
        return difference
    return "" if state.data == data else f"it was trained on the data {state.data}, not on {data}"


def _manifest(data: PreparedData) -> dict[str, Any]:
    """The data's description that the run keeps, including the data's location."""
    return {**data.manifest, "folder": str(data.folder.resolve())}
