"""A training's log: always log.jsonl; TensorBoard, trackio and W&B on request."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import xxhash

from trainwright.errors import UsageError, WriteError
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.runs.folder import RECIPE


class Log:
    """log.jsonl and the sinks; one record per line, in the order of updates."""

    def __init__(self, file: Path, sinks: Sequence[Sink] = (), heading: Mapping[str, Any] | None = None) -> None:
        """heading: the first record of a new log; it is not sent to the sinks."""
        self._file = file
        self._heading = heading
        self._sinks = sinks
        self._stream: TextIO | None = None

    def write(self, kind: str, update: int, values: Mapping[str, Any]) -> None:
        """Append a record.

        Raises:
            WriteError: if it cannot be written.
        """
        record = {"kind": kind, "update": update, **values}
        try:
            self._stream = self._stream or self._opened()
            self._stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._stream.flush()
        except OSError as error:
            raise WriteError(
                f"{self._file} could not be written: {error}. Free some space, then run the same command again: "
                "training resumes from its last checkpoint."
            ) from error
        numbers = {f"{kind}/{k}": float(v) for k, v in values.items() if isinstance(v, int | float)}
        for sink in self._sinks if numbers else ():
            sink.write(numbers, update)

    def _opened(self) -> TextIO:
        stream = self._file.open("a", encoding="utf-8")
        if self._heading is not None and not stream.tell():
            stream.write(json.dumps(self._heading, ensure_ascii=False) + "\n")
        return stream

    def settle(self) -> None:
        """Sync the log to disk, before a checkpoint refers to it."""
        if self._stream is not None:
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file and the sinks."""
        if self._stream is not None:
            self._stream.close()
        for sink in self._sinks:
            sink.close()


def cut(file: Path, update: int) -> None:
    """Remove the records after an update, and an incomplete last line."""
    if not file.exists():
        return
    keep = 0
    with file.open("rb") as stream:
        for line in stream:
            try:
                record = json.loads(line)
                if not line.endswith(b"\n") or record["update"] > update:
                    break
            except (ValueError, TypeError, KeyError):
                break
            keep += len(line)
    os.truncate(file, keep)


def check_sinks(names: Sequence[str]) -> None:
    """Reject sinks whose package is missing, before training starts.

    Raises:
        UsageError: if one is missing.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:  # a sink is named after its package
            raise UsageError(
                f"run.sinks names {name}, whose package is not installed. Run pip install {name}, or remove it."
            )


def open_sinks(names: Sequence[str], folder: Path, recipe: Recipe, update: int) -> list[Sink]:
    """Open the sinks by name; a run that resumes after `update` resumes there too."""
    return [_OPENED[name](folder, recipe, update) for name in names]


class _TensorBoard:
    """Takes a training's numbers, as `_Tracker` does."""

    def __init__(self, folder: Path, recipe: Recipe, update: int) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # where it is installed, TensorFlow logs its start
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1 if update else None)

    def write(self, values: Mapping[str, float], update: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """trackio or W&B, whose functions have the same names."""

    def __init__(self, package: str, recipe: Recipe, **named: Any) -> None:
        self._tracker: Any = importlib.import_module(package)
        self._tracker.init(project="trainwright-lm", config=as_tables(recipe), resume="allow", **named)

    def write(self, values: Mapping[str, float], update: int) -> None:
        self._tracker.log(dict(values), step=update)

    def close(self) -> None:
        self._tracker.finish()


Sink = _TensorBoard | _Tracker


def _identity(folder: Path) -> str:
    """The run's name: unchanged when it resumes, new when a run is restarted in the same folder."""
    begun = f"{folder.resolve()} {(folder / RECIPE).stat().st_mtime_ns}"
    return f"{folder.resolve().name}-{xxhash.xxh32_hexdigest(begun.encode())}"


_OPENED: Mapping[str, Callable[[Path, Recipe, int], Sink]] = {
    "tensorboard": _TensorBoard,
    "trackio": lambda folder, recipe, update: _Tracker("trackio", recipe, name=_identity(folder)),
    "wandb": lambda folder, recipe, update: _Tracker(
        "wandb", recipe, id=_identity(folder), name=folder.resolve().name, dir=str(folder)
    ),
}
