"""Tells which lines are the user's: places in stacks."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from trainwright.core import Place


def _folders_of(package: str) -> tuple[str, ...]:
    """The folders of a package, each with a separator at its end; none if it is not installed. It is not imported."""
    spec = importlib.util.find_spec(package)
    return tuple(f"{Path(folder).resolve()}{os.sep}" for folder in (spec and spec.submodule_search_locations) or ())


_LANGUAGE_MODEL = _folders_of("trainwright_lm")
_OURS = (*_folders_of("trainwright"), *_LANGUAGE_MODEL)
_LIBRARIES = tuple(
    {str(Path(sysconfig.get_path(p)).resolve()) for p in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {sysconfig.get_path(p) for p in ("stdlib", "platstdlib", "purelib", "platlib")}
)
# Our functions that forward a call unchanged: inner watchers skip their frames.
_PASSING_ON = ("__torch_function__", "passed_on")
# Packages whose own programs (`python -m torch.distributed.run`) are not a user's training.
_FRAMEWORKS = frozenset({"torch", "transformers", "accelerate", "datasets", "lightning", "pytorch_lightning", "keras",
                         "tensorflow", "tf_keras", "jax", "deepspeed", "pytest", "IPython"})  # fmt: skip
# Those among them whose names no user package has (unlike datasets or lightning).
_UNMISTAKABLE = ("torch", "transformers", "accelerate", "pytorch_lightning", "keras", "tensorflow", "tf_keras", "jax")
# Folders of installed packages, and those in which Hugging Face's libraries keep copies of code that they load.
_INSTALLED = ("site-packages", "dist-packages", "evaluate_modules", "datasets_modules", "transformers_modules")
# Folders of the package whose module is being checked, wherever it is installed.
_checked: tuple[str, ...] = ()


@contextlib.contextmanager
def checking_module(module: str) -> Iterator[None]:
    """Treat the module's package as the user's, wherever it is installed; of Trainwright itself, only the language model.

    An empty name or a framework's changes nothing.
    """
    top = module.partition(".")[0]
    folders = _folders_of(top) if top and top not in _FRAMEWORKS else ()
    before = _checked
    _treat_as_users(_LANGUAGE_MODEL if top == "trainwright" else folders)
    try:
        yield
    finally:
        _treat_as_users(before)


def _treat_as_users(folders: tuple[str, ...]) -> None:
    global _checked
    if folders != _checked:
        _checked = folders
        is_users.cache_clear()
        is_ours.cache_clear()


def _resolved(file: str) -> str:
    """The file's path without links in its folders; frameworks' files are thousands, in some hundred folders."""
    folder, name = os.path.split(file)
    return f"{_real_path(folder, None if folder.startswith(os.sep) else Path.cwd())}{os.sep}{name}"


@cache
def _real_path(path: str, beside: Path | None) -> str:
    return str(Path(beside or "", path).resolve())


@cache
def is_users(file: str) -> bool:
    """Whether a code file is the user's: not a library's, ours or built in."""
    if file.startswith("<"):
        return file.startswith("<ipython") or file.startswith("<stdin")
    path = _resolved(file)
    return path.startswith(_checked) or (
        not path.startswith((*_LIBRARIES, *_OURS))
        and not any(folder in path for folder in _INSTALLED)
        and not path.startswith(_framework_folders())
    )


def _framework_folders() -> tuple[str, ...]:
    """The folders of the loaded frameworks, which for a source checkout may be anywhere."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _UNMISTAKABLE]
    parts = [os.path.split(_real_path(file, None)) for file in files if file]
    return tuple(f"{folder}{os.sep}" for folder, name in parts if name == "__init__.py")


@cache
def is_ours(file: str) -> bool:
    """Whether a code file is Trainwright's own."""
    if file.startswith("<"):
        return False
    path = _resolved(file)
    return path.startswith(_OURS) and not path.startswith(_checked)


def is_cell(file: str) -> bool:
    """Whether a code file is a notebook cell."""
    return file.startswith("<ipython") or bool(_CELL.search(file)) or file in cell_numbers()


# Jupyter's kernel names a cell's code /tmp/ipykernel_<process>/<hash>.py, and keeps its text in linecache.
_CELL = re.compile(r"ipykernel_\d+")


def cell_numbers() -> dict[str, Any]:
    """The execution number that a notebook shows before each cell, by the name of the cell's code."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return numbers if isinstance(numbers, dict) else {}


def show(file: str) -> str:
    """The path as shown in the report: relative to the working directory if it is inside it.

    A notebook cell is named by its execution number, under which its text can also be found.
    """
    if (number := cell_numbers().get(file)) is not None:
        name = f"In [{number}]"
        if file in linecache.cache:
            linecache.cache[name] = linecache.cache[file]
        return name
    return _show_below(file, Path.cwd())


@cache
def _show_below(file: str, folder: Path) -> str:
    try:
        return str(Path(folder, file).resolve().relative_to(folder))
    except ValueError:
        return file


def place_of(frame: FrameType) -> Place:
    """A frame's current line."""
    return Place(show(frame.f_code.co_filename), frame.f_lineno)


def definition_place(function: Any) -> Place | None:
    """Where a function of the user's begins; None for others' and for what has no code."""
    code = getattr(function, "__code__", None)
    return Place(show(code.co_filename), code.co_firstlineno) if code and is_users(code.co_filename) else None


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest user frame on the stack, up to where Trainwright called into the pipeline."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    while frame is not None and not is_users(frame.f_code.co_filename):
        # With two stacked watchers, one of our frames is between the user's call and the other watcher.
        if is_ours(frame.f_code.co_filename) and frame.f_code.co_name not in _PASSING_ON:
            return None
        frame = frame.f_back
    return frame


def user_place(frame: FrameType | None = None) -> Place | None:
    """The nearest user line on the stack, or None if only framework frames are between us and it."""
    found = user_frame(frame or sys._getframe(1))
    return place_of(found) if found else None


def nearest_place(frame: FrameType | None) -> Place | None:
    """The nearest line of the user's on the stack, whoever stands between; libraries and ours are passed over."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return place_of(frame) if frame is not None else None


def places_on_the_way(frame: FrameType | None) -> Iterator[Place]:
    """The user's lines that led to a user frame, its own first, up to the script's first line."""
    yield from map(place_of, frames_on_the_way(frame))


def callers(frame: FrameType) -> Iterator[FrameType]:
    """The frames of the script that led to this one, the nearest first."""
    yield from frames_on_the_way(frame.f_back if frame.f_code.co_name != "<module>" else None)


def frames_on_the_way(frame: FrameType | None) -> Iterator[FrameType]:
    """The user's frames up to the one that runs a file: those that run the script are no part of it."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back if frame.f_code.co_name != "<module>" else None
