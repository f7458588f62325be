"""Checkpoints: folders that are written atomically and verified when loaded.

checkpoints/step-00000200/
    model.safetensors      weights, by the model's names
    optimizer.safetensors  the optimizer's state
    shards/                in place of these two, what each process of a sharded training wrote
    state.json             the progress of the training; sizes and checksums of the files, and of itself
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainwright.errors import ReadError, WriteError
from trainwright_lm.atomic import checksum, read_json, to_disk

FORMAT = "trainwright-lm-checkpoint"
VERSION = 1
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
SHARDS = "shards"
_NAME = re.compile(r"step-(\d{8,})")
# Folders being written or removed; any process that finds one may remove it.
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True, kw_only=True)
class State:
    """The state of a training after an update, except weights and optimizer.

    It has no random state: an update's random numbers follow from the recipe's seed and the update's number.
    """

    update: int
    """Updates done."""
    recipe: Mapping[str, Mapping[str, Any]]
    """As tables."""
    data: str
    """The data's fingerprint."""
    validation_loss: float | None = None
    """Nats per token after this update, if it was measured."""
    best_update: int | None = None
    best_loss: float | None = None
    open_nats: float = 0.0
    """Loss and weight of the updates since the last line of the log."""
    open_weight: float = 0.0
    seconds: float = 0.0
    """Training time so far."""
    precision: str = "fp32"
    """fp32 or bf16, for forward and backward passes; "auto" is resolved."""
    muon_precision: str = "bf16"
    """The same for Muon's products; the default is the format used before this setting existed."""
    threads: int = 0
    """torch's CPU threads; 0: unknown, or on a GPU."""
    processes: int = 1
    device: str = ""
    """cpu or cuda; "": unknown."""
    compiled: bool = False
    """Whether layers and loss were."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The contents of a checkpoint folder."""

    folder: Path
    state: State
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    """Empty for imported weights."""


def step_folder(checkpoints: Path, update: int) -> Path:
    """The folder of an update's checkpoint."""
    return checkpoints / f"step-{update:08d}"


def steps(checkpoints: Path) -> list[int]:
    """Updates that have a checkpoint folder, ascending; the folders are not verified."""
    if not checkpoints.is_dir():
        return []
    return sorted(int(m[1]) for p in checkpoints.iterdir() if (m := _NAME.fullmatch(p.name)) and p.is_dir())


def save(checkpoints: Path, state: State, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> Path:
    """Write a checkpoint; return its folder.

    Raises:
        WriteError: if it cannot be written (a full disk); earlier checkpoints are unchanged.
    """
    with saving(checkpoints, state) as passing:
        for name, tensors in ((MODEL, model), (OPTIMIZER, optimizer)):
            save_file({k: v.detach().contiguous().cpu() for k, v in tensors.items()}, passing / name, {"format": "pt"})
            to_disk(passing / name)
    return step_folder(checkpoints, state.update)


def passing_folder(checkpoints: Path, update: int) -> Path:
    """The temporary name of an update's checkpoint."""
    return checkpoints / f"{_UNFINISHED}{step_folder(checkpoints, update).name}"


@contextlib.contextmanager
def saving(checkpoints: Path, state: State) -> Iterator[Path]:
    """A context that writes the tensors into a folder with a temporary name; at its end, the folder is renamed.

    Raises:
        WriteError: if it cannot be written (a full disk); earlier checkpoints are unchanged.
    """
    folder, passing = step_folder(checkpoints, state.update), passing_folder(checkpoints, state.update)
    try:
        checkpoints.mkdir(parents=True, exist_ok=True)
        _remove(passing)
        passing.mkdir()
        yield passing
        for inside in filter(Path.is_dir, passing.iterdir()):
            to_disk(inside)
        _write_state(passing, state)
        to_disk(passing)
        if folder.exists():  # it was rejected, and is being written again
            remove(folder)
        passing.rename(folder)
        to_disk(checkpoints)
    except (OSError, SafetensorError) as error:
        with contextlib.suppress(OSError):
            _remove(passing)
        raise WriteError(
            f"The checkpoint of update {state.update} could not be written to {checkpoints}: {error}. What was saved "
            f"before is intact{_last(checkpoints)}. Free some space, then run the same command again to resume from there."
        ) from error


def load(folder: Path) -> Checkpoint:
    """Load a checkpoint and verify each of its files.

    Raises:
        ReadError: if it is incomplete, or not a checkpoint of this version.
    """
    state, files = read_state(folder), _read(folder)["files"]
    for name, file in files.items():
        _check(folder / name, file)
    try:
        if MODEL in files:
            model, optimizer = load_file(folder / MODEL), load_file(folder / OPTIMIZER)
        else:
            from trainwright_lm.runs.sharded import read  # half a second to import

            model, optimizer = read(folder / SHARDS)
    except (OSError, SafetensorError) as error:
        raise ReadError(f"{folder} must have safetensors files: {error}.") from error
    return Checkpoint(folder=folder, state=state, model=model, optimizer=optimizer)


def read_state(folder: Path) -> State:
    """The contents of a checkpoint's state.json; its tensors are not read.

    Raises:
        ReadError: if it cannot be read or is not of this format and version.
    """
    try:
        return State(**_read(folder)["state"])
    except TypeError as error:
        raise ReadError(f"{folder} must have been written by this version of Trainwright: {error}.") from error


def newest_whole(checkpoints: Path, fits: Callable[[State], str], say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is complete and matches. Others are reported with the reason and set aside.

    Args:
        fits: returns why a state does not belong to this run; "" if it does.

    Raises:
        ReadError: if there are checkpoints but none is usable.
    """
    refused: dict[Path, str] = {}
    for update in reversed(steps(checkpoints)):
        folder = step_folder(checkpoints, update)
        try:
            checkpoint = load(folder)
            if why := fits(checkpoint.state):
                raise ReadError(f"{folder} belongs to another run: {why}.")
        except ReadError as error:
            refused[folder] = str(error)
            continue
        for passed_over, why in refused.items():
            say(f"{why} Set aside as {_set_aside(passed_over).name}.")
        return checkpoint
    if refused:
        raise ReadError(
            f"None of the {len(refused)} checkpoints in {checkpoints} can be resumed. "
            f"{next(iter(refused.values()))} Start over with --restart (this removes the existing run), "
            "or choose another --out."
        )
    return None


def prune(checkpoints: Path, keep: int, best: int | None) -> None:
    """Remove unfinished checkpoints, and all others except the newest `keep` and the best one."""
    stay = {*steps(checkpoints)[-max(keep, 1) :], best}
    for update in steps(checkpoints):
        if update not in stay:
            remove(step_folder(checkpoints, update))
    for left in checkpoints.glob(f"{_UNFINISHED}*"):
        _remove(left)


def remove(folder: Path) -> None:
    """Remove a checkpoint atomically, so that no partial one remains under its name."""
    leaving = folder.with_name(f"{_UNFINISHED}old-{folder.name}")
    _remove(leaving)
    folder.rename(leaving)
    _remove(leaving)


def fill(model: torch.nn.Module, checkpoint: Checkpoint) -> None:
    """Load the checkpoint's weights into a model.

    Raises:
        ReadError: if names or shapes differ from the model's.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    came = {name: tuple(tensor.shape) for name, tensor in checkpoint.model.items()}
    if wanted != came:
        name = sorted(k for k in {*wanted, *came} if wanted.get(k) != came.get(k))[0]
        raise ReadError(
            f"{checkpoint.folder / MODEL} must hold the recipe's weights: {name} must be "
            f"{wanted.get(name, 'absent')}; it is {came.get(name, 'absent')}."
        )
    model.load_state_dict(checkpoint.model)


def _write_state(folder: Path, state: State) -> None:
    names = [str(file.relative_to(folder)) for file in sorted(folder.rglob("*.safetensors"))]
    files = {n: {"bytes": (folder / n).stat().st_size, "xxh3": checksum(folder / n)} for n in names}
    body = {"format": FORMAT, "version": VERSION, "state": asdict(state), "files": files}
    text = json.dumps({**body, "xxh3": _checksum_of(body)}, indent=1)
    (folder / STATE).write_text(text, encoding="utf-8")
    to_disk(folder / STATE)


def _read(folder: Path) -> dict[str, Any]:
    file = folder / STATE
    body = read_json(file, f"{file} must be a checkpoint's state")
    if body.get("format") != FORMAT:
        raise ReadError(f"{file} is not the state of a `trainwright lm` checkpoint.")
    if body.get("version") != VERSION:
        raise ReadError(f"{file} must have version {VERSION}; it has version {body.get('version')}.")
    if body.pop("xxh3", None) != _checksum_of(body):
        raise ReadError(f"{file} was changed after it was written: its checksum differs.")
    return body


def _check(file: Path, written: Mapping[str, Any]) -> None:
    if not file.is_file():
        raise ReadError(f"{file} is missing, so the checkpoint is incomplete.")
    if (size := file.stat().st_size) != written["bytes"]:
        raise ReadError(f"{file} must be {written['bytes']} bytes long; it has {size}.")
    if checksum(file) != written["xxh3"]:
        raise ReadError(f"{file} was changed after it was written: its checksum differs.")


def _checksum_of(body: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _set_aside(folder: Path) -> Path:
    """Rename a checkpoint so that it no longer counts as one; return the new path."""
    aside = folder.with_name(f"{folder.name}.refused")
    _remove(aside)
    return folder.rename(aside)


def _last(checkpoints: Path) -> str:
    there = steps(checkpoints)
    return f", most recently of update {there[-1]}" if there else " (nothing yet)"
