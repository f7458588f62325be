"""Keeps what the user's code would print or write to itself, while the walk runs it for a look.

What it writes is kept in a folder of our own, and given back where the code reads it again.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_WRITING = frozenset("wax+")
_MAKING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Calls that make, copy or delete files: module, owner in it ("" for the module itself), names. Checkpoints are written
# by native code (safetensors) or into folders that were not made, and rotated by deleting older ones; trackers send.
_SILENT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("os", "", ("mkdir", "rmdir", "symlink", "link", "system")),
    ("shutil", "", ("rmtree", "copytree", "make_archive")),
    ("safetensors.torch", "", ("serialize_file",)),
    ("accelerate.accelerator", "Accelerator", ("save_state", "save_model", "save", "log", "log_images",
                                               "init_trackers", "end_training")),
    ("transformers.modeling_utils", "PreTrainedModel", ("save_pretrained", "push_to_hub")),
    ("transformers.configuration_utils", "PreTrainedConfig", ("save_pretrained",)),
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", ("save_pretrained", "push_to_hub")),
)  # fmt: skip


class _Desk:
    """What was written since the process began, by its path: in a file of ours, or as the object that was saved."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.saved: dict[str, Any] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def path_for(self, path: Any) -> str:
        """Our file for a path that is written; it begins with what the path holds."""
        key, make, read = _key(path), _ORIGINAL["os.mkdir"], _ORIGINAL["open"]
        if key not in self.files:
            if self._folder is None:
                with _replaced(os, "mkdir", make):
                    self._folder = tempfile.TemporaryDirectory(prefix="trainwright-")
            self.files[key] = str(Path(self._folder.name) / str(len(self.files)))
            with contextlib.suppress(OSError), read(path, "rb") as old, read(self.files[key], "wb") as new:
                new.write(old.read())
        return self.files[key]

    def move(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Rename or copy what was written; what was not is left alone."""
        for kept in (self.files, self.saved):
            if _key(source) in kept:
                kept[_key(target)] = kept[_key(source)]
        return target

    def remove(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Delete what was written."""
        self.files.pop(_key(path), None)
        self.saved.pop(_key(path), None)

    def save(self, value: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        """`torch.save` without a file."""
        if isinstance(path, (str, os.PathLike)):
            self.saved[_key(path)] = value

    def loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.load`, of what was saved too."""

        def load(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, (str, os.PathLike)) and _key(path) in self.saved:
                return copy.deepcopy(self.saved[_key(path)])
            return original(path, *args, **kwargs)

        return load

    def opening(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`open`, with our files for what is written."""

        def open_aside(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if isinstance(file, (str, os.PathLike)):
                if _WRITING & set(mode):
                    return original(self.path_for(file), mode.replace("x", "w"), *args, **kwargs)
                file = self.files.get(_key(file), file)
            return original(file, mode, *args, **kwargs)

        return open_aside

    def existing(self, original: Callable[..., bool]) -> Callable[..., bool]:
        """`os.path.exists` and its like, of what was written too."""

        def exists(path: Any) -> bool:
            written = isinstance(path, (str, os.PathLike)) and (
                _key(path) in self.files or _key(path) in self.saved
            )
            return written or original(path)

        return exists

    def measuring(self, original: Callable[..., int]) -> Callable[..., int]:
        """`os.path.getsize`, of what was written too."""

        def size(path: Any) -> int:
            if isinstance(path, (str, os.PathLike)) and _key(path) in self.saved:
                return 1
            return original(
                self.files.get(_key(path), path) if isinstance(path, (str, os.PathLike)) else path
            )

        return size


_DESK = _Desk()
_ORIGINAL: dict[str, Callable[..., Any]] = {"os.mkdir": os.mkdir, "open": builtins.open}


def _key(path: Any) -> str:
    return str(Path(os.fsdecode(path)).absolute())


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Nothing is printed, and no file or folder is written, moved or deleted through the calls that scripts make for it."""
    torch = sys.modules.get("torch")
    shutil = sys.modules["shutil"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        changes: list[tuple[Any, str, Any]] = [
            (builtins, "open", _DESK.opening(builtins.open)),
            (io, "open", _DESK.opening(io.open)),
            (os, "open", _only_reading(os.open)),
            *((os.path, n, _DESK.existing(getattr(os.path, n))) for n in ("exists", "isfile")),
            (os.path, "getsize", _DESK.measuring(os.path.getsize)),
            *((os, n, _DESK.move) for n in ("rename", "replace")),
            *((shutil, n, _DESK.move) for n in ("move", "copy", "copy2", "copyfile")),
            *((os, n, _DESK.remove) for n in ("remove", "unlink")),
            *((subprocess, n, _done) for n in ("run", "call", "check_call", "check_output")),
        ]
        if torch is not None:
            changes += [(torch, "save", _DESK.save), (torch, "load", _DESK.loading(torch.load))]
        for owner, name, value in changes:
            stack.enter_context(_replaced(owner, name, value))
        for module, owner_name, names in _SILENT:
            found: Any = sys.modules.get(module)
            if found is not None and owner_name:
                found = getattr(found, owner_name, None)
            for name in names:
                if found is not None and hasattr(found, name):
                    stack.enter_context(_replaced(found, name, lambda *args, **kwargs: None))
        yield


def _only_reading(original: Callable[..., int]) -> Callable[..., int]:
    def open_for_reading(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        return original(
            os.devnull if flags & _MAKING else path, flags & ~(os.O_CREAT | os.O_EXCL), *args, **kwargs
        )

    return open_for_reading


def _done(command: Any, *args: Any, **kwargs: Any) -> Any:
    """A command that was not run, as if it had succeeded in silence."""
    return subprocess.CompletedProcess(command, 0, stdout="" if kwargs.get("text") else b"", stderr=b"")


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    inherited = isinstance(owner, type) and name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
