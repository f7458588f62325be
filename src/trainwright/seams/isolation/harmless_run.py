"""Where the kernel isolates no process: what a script writes is redirected, and what cannot be is refused."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import wrapt

from trainwright.seams.isolation.downloads import download_folders
from trainwright.seams.isolation.refused import Guard, refusing
from trainwright.seams.isolation.tally import KeptAway
from trainwright.seams.isolation.written_files import Change, Desk
from trainwright.seams.listening.doors import replaced

# Functions that open a file past the replaced calls: module, name, the path's position and name, and how: `r` or `w`;
# empty: as their mode says, the next argument.
_OPENING: tuple[tuple[str, str, int, str, str], ...] = (
    ("bz2", "_builtin_open", 0, "file", ""),
    ("tarfile", "bltn_open", 0, "file", ""),
    ("sqlite3", "connect", 0, "database", "a"),
    ("sqlite3.dbapi2", "connect", 0, "database", "a"),
    ("numpy.lib._datasource", "open", 0, "path", ""),
    ("torch", "save", 1, "f", "w"),
    ("torch", "load", 0, "f", "r"),
    ("torch.jit", "save", 1, "f", "w"),
    ("torch.jit", "load", 0, "f", "r"),
    ("safetensors.torch", "serialize_file", 1, "filename", "w"),
    ("safetensors.torch", "safe_open", 0, "filename", "r"),
    ("h5py._hl.files", "make_fid", 0, "name", ""),
    ("cv2", "imwrite", 0, "filename", "w"),
    ("cv2", "imread", 0, "filename", "r"),
    *((module, name, 0, argument, how) for module in ("pyarrow", "pyarrow.lib") for name, argument, how in (
        ("OSFile", "path", ""), ("memory_map", "path", ""), ("create_memory_map", "path", "w"), ("input_stream", "source", "r"),
        ("output_stream", "source", "w"))),
    *(("pyarrow.feather", name, 0, "source", "r") for name in ("read_table", "read_feather")),
    ("pyarrow.feather", "write_feather", 1, "dest", "w"),
    *(("pyarrow.csv", name, 0, "input_file", "r") for name in ("read_csv", "open_csv")),
    ("pyarrow.csv", "write_csv", 1, "output_file", "w"),
    ("pyarrow.csv", "CSVWriter", 0, "sink", "w"),
    ("pyarrow.json", "read_json", 0, "input_file", "r"),
    *(("pyarrow.parquet", name, 0, "source", "r") for name in ("read_table", "read_pandas", "ParquetFile")),
    *(("pyarrow.parquet", name, 0, "where", "r") for name in ("read_schema", "read_metadata")),
    ("pyarrow.parquet", "ParquetWriter", 0, "where", "w"),
    *((module, "write_table", 1, "where", "w") for module in ("pyarrow.parquet", "pyarrow.orc")),
)  # fmt: skip
# Functions of libraries in C that write past all that Python hears, and are refused outside our own folder.
_REFUSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pyarrow.dataset", ("write_dataset",)),
    ("tensorflow.python.ops.io_ops", ("save_v2", "write_file")),
    (
        "tensorflow.python.lib.io._pywrap_file_io",
        (
            "WritableFile",
            "CreateDir",
            "RecursivelyCreateDir",
            "CopyFile",
            "RenameFile",
            "DeleteFile",
            "DeleteRecursively",
        ),
    ),
)


@contextlib.contextmanager
def aside(tally: KeptAway, folder: Path, kept: Iterable[Path] = ()) -> Iterator[Guard]:
    """While the context lasts, nothing of the user's is written, and no log of before gets a record.

    Args:
        tally: counts what was kept away.
        folder: an empty one, for what is written.
        kept: folders in which what is written lasts.
    """
    desk = Desk(folder, tally.files, (*kept, *download_folders()))
    guard = Guard(desk.is_ours, tally)
    with contextlib.ExitStack() as stack:
        stack.callback(_forget_folders, desk.temporary)
        counting = (logging.Logger, "callHandlers", _counting_records(tally))
        stack.enter_context(replaced([(sys, "dont_write_bytecode", True), *desk.changes(), counting]))
        libraries = _Libraries(stack, desk, guard)
        for module in _modules():
            if module in sys.modules:
                libraries.change(module)
        _active.append(libraries)
        stack.callback(_active.remove, libraries)
        _watch_imports()
        stack.enter_context(refusing(guard))
        yield guard


class _Libraries:
    """Replacements in libraries, in force until a stack is closed."""

    def __init__(self, stack: contextlib.ExitStack, desk: Desk, guard: Guard) -> None:
        self._stack, self._desk, self._guard = stack, desk, guard
        self._done: set[str] = set()

    def change(self, module: str) -> None:
        """Apply a module's replacements once."""
        if module in self._done:
            return
        self._done.add(module)
        self._stack.enter_context(replaced(self._changes(sys.modules[module])))

    def _changes(self, module: Any) -> Iterator[Change]:
        for name, position, argument, how in (row[1:] for row in _OPENING if row[0] == module.__name__):
            if hasattr(module, name):
                yield module, name, self._opening(getattr(module, name), position, argument, how)
        for name in (one for named, names in _REFUSED if named == module.__name__ for one in names):
            if hasattr(module, name):
                yield module, name, self._refusing(getattr(module, name), f"writing by {module.__name__}.{name}")

    def _opening(self, original: Callable[..., Any], position: int, argument: str, how: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = list(args)
            path = given[position] if len(given) > position else kwargs.get(argument)
            if isinstance(path, (str, bytes, os.PathLike)) and not os.fsdecode(path).startswith((":memory:", "file:")):
                mode = how or str(kwargs.get("mode", given[position + 1] if len(given) > position + 1 else "r") or "r")
                reads = mode.startswith("r") and "+" not in mode
                path = self._desk.seen_as(path) if reads else self._desk.place_for(path, mode)
                if len(given) > position:
                    given[position] = path
                else:
                    kwargs[argument] = path
            return original(*given, **kwargs)

        return call

    def _refusing(self, original: Callable[..., Any], what: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            paths = [one for one in (*args, *kwargs.values()) if isinstance(one, (str, bytes, os.PathLike))]
            if not paths or not all(map(self._desk.is_ours, paths)):
                raise self._guard.refusal(what)
            return original(*args, **kwargs)

        return call


_active: list[_Libraries] = []


def _modules() -> set[str]:
    return {row[0] for row in _OPENING} | {row[0] for row in _REFUSED}


@functools.cache
def _watch_imports() -> None:
    for module in _modules() - sys.modules.keys():
        wrapt.register_post_import_hook(_imported, module)


def _imported(module: Any) -> None:
    for one in _active:
        one.change(module.__name__)


def _counting_records(tally: KeptAway) -> Callable[..., None]:
    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        tally.records += self.hasHandlers()

    return call_handlers


def _forget_folders(temporary: str) -> None:
    """Forget temporary folders: multiprocessing stores one for the whole process, compilers in a variable."""
    for name in [n for n, value in os.environ.items() if value.startswith(temporary)]:
        del os.environ[name]
    settings = getattr(getattr(sys.modules.get("multiprocessing.process"), "_current_process", None), "_config", {})
    if str(settings.get("tempdir") or "").startswith(temporary):
        del settings["tempdir"]
