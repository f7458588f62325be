"""Arrow opens files in C++, past the replaced calls of Python: its own calls get the redirected paths.

A path that it opens itself is exchanged in the arguments; its local file system is exchanged for one that Arrow calls
back, and that uses Python's calls.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

from trainwright.seams.isolation.network import Change
from trainwright.seams.isolation.written_files import Desk

# Functions and classes that take a path, and where: module, name, the argument's position and name.
_READING = (
    ("pyarrow.lib", "input_stream", 0, "source"),
    ("pyarrow", "input_stream", 0, "source"),
    ("pyarrow.ipc", "RecordBatchStreamReader.__init__", 1, "source"),
    ("pyarrow.ipc", "RecordBatchFileReader.__init__", 1, "source"),
    *((module, name, 0, "input_file") for module in ("pyarrow._csv", "pyarrow.csv") for name in ("read_csv", "open_csv")),
    *((module, name, 0, "input_file") for module in ("pyarrow._json", "pyarrow.json") for name in ("read_json", "open_json")),
    ("pyarrow.feather", "read_table", 0, "source"),
    ("pyarrow.feather", "read_feather", 0, "source"),
    ("pyarrow.orc", "ORCFile.__init__", 1, "source"),
)  # fmt: skip
_WRITING = (
    *((module, name, 0, keyword) for module in ("pyarrow.lib", "pyarrow")
      for name, keyword in (("output_stream", "source"), ("create_memory_map", "path"))),
    ("pyarrow.lib", "MemoryMappedFile.create", 0, "path"),
    ("pyarrow.ipc", "RecordBatchStreamWriter.__init__", 1, "sink"),
    ("pyarrow.ipc", "RecordBatchFileWriter.__init__", 1, "sink"),
    ("pyarrow._csv", "write_csv", 1, "output_file"),
    ("pyarrow.csv", "write_csv", 1, "output_file"),
    ("pyarrow._csv", "CSVWriter", 0, "sink"),
    ("pyarrow.csv", "CSVWriter", 0, "sink"),
    ("pyarrow.feather", "write_feather", 1, "dest"),
    ("pyarrow.orc", "ORCWriter.__init__", 1, "where"),
    ("pyarrow._parquet", "FileMetaData.write_metadata_file", 1, "where"),
)  # fmt: skip
# The same of calls whose next argument is a mode.
_OPENING = (("pyarrow.lib", "OSFile", 0, "path"), ("pyarrow", "OSFile", 0, "path"))
_MAPPING = (("pyarrow.lib", "memory_map", 0, "path"), ("pyarrow", "memory_map", 0, "path"))
# The same of those that take a file system.
_METHODS = ("get_file_info", "create_dir", "delete_dir", "delete_dir_contents", "move", "copy_file", "delete_file",
            "open_input_file", "open_input_stream", "open_output_stream", "open_append_stream")  # fmt: skip
_FILE_SYSTEMS = (
    *(("pyarrow._fs", f"FileSystem.{name}", 0, "self") for name in _METHODS),
    ("pyarrow.dataset", "FileSystemDatasetFactory", 0, "filesystem"),
    ("pyarrow.dataset", "ParquetDatasetFactory", 1, "filesystem"),
)
# Modules with the function that returns the file system of a path.
_RESOLVING = ("pyarrow.fs", "pyarrow.parquet.core", "pyarrow.orc")
_RESOLVE = "_resolve_filesystem_and_path"


def redirected(desk: Desk) -> dict[str, Callable[[Any], Iterator[Change]]]:
    """Replacements in Arrow, by the module to patch."""

    def read(path: Any, mode: Any) -> Any:
        return desk.seen_as(path)

    def written(path: Any, mode: Any) -> Any:
        return desk.place_for(path, fresh=True)

    def opened(path: Any, mode: Any) -> Any:
        return read(path, mode) if (mode or "r")[0] == "r" else desk.place_for(path, fresh=mode[0] == "w")

    def mapped(path: Any, mode: Any) -> Any:  # a file that is mapped for writing keeps its size
        return read(path, mode) if mode in (None, "r", "rb") else desk.place_for(path)

    tables = ((_READING, read), (_WRITING, written), (_OPENING, opened), (_MAPPING, mapped))
    rows = [(row, _of_path(exchange)) for table, exchange in tables for row in table]
    rows += [(row, _of_file_system) for row in _FILE_SYSTEMS]

    def changes(module: Any) -> Iterator[Change]:
        for (_, path, position, keyword), exchange in (r for r in rows if r[0][0] == module.__name__):
            first, _, inner = path.partition(".")
            owner, name = (getattr(module, first, None), inner) if inner else (module, first)
            if hasattr(owner, name):
                value = _given(getattr(owner, name), position, keyword, exchange)
                yield owner, name, staticmethod(value) if isinstance(vars(owner).get(name), staticmethod) else value
        if module.__name__ in _RESOLVING and hasattr(module, _RESOLVE):
            yield module, _RESOLVE, _resolving(getattr(module, _RESOLVE))
        if module.__name__ == "pyarrow.dataset":
            yield module, "write_dataset", _again(module.write_dataset)

    return dict.fromkeys([*(row[0] for row, _ in rows), *_RESOLVING], changes)


def _given(original: Any, position: int, keyword: str, exchange: Callable[[Any, Any], Any]) -> Any:
    """A function or class, called with another argument; its exchange is also told the next argument or the mode."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        mode = kwargs.get("mode", given[position + 1] if len(given) > position + 1 else None)
        if len(given) > position:
            given[position] = exchange(given[position], mode)
        elif keyword in kwargs:
            kwargs[keyword] = exchange(kwargs[keyword], mode)
        return original(*given, **kwargs)

    return _standing_for_class(original, call) if isinstance(original, type) else call


def _of_path(exchange: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The exchange of a path; other arguments stay as they are."""

    def path(given: Any, mode: Any) -> Any:
        is_path = isinstance(given, (str, bytes, os.PathLike))
        return exchange(os.path.expanduser(given), mode) if is_path else given  # noqa: PTH111 (as Arrow does)

    return path


def _of_file_system(given: Any, _: Any) -> Any:
    """The same file system by Python's calls, if it is that of this machine."""
    arrow = sys.modules["pyarrow._fs"]
    if isinstance(given, arrow.LocalFileSystem):
        return arrow.PyFileSystem(type("ByPython", (_ByPython, arrow.FileSystemHandler), {})())
    if isinstance(given, arrow.SubTreeFileSystem) and isinstance(given.base_fs, arrow.LocalFileSystem):
        return arrow.SubTreeFileSystem(given.base_path, _of_file_system(given.base_fs, _))
    return given


def _standing_for_class(original: type, make: Callable[..., Any]) -> type:
    """A class whose objects are those of another one, made by a function."""

    class Kind(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs) if cls is standing else super().__call__(*args, **kwargs)

        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, original) if cls is standing else super().__instancecheck__(one)

    standing = Kind(original.__name__, (original,), {"__module__": original.__module__})
    return standing


def _resolving(original: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    def resolve(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        system, path = original(*args, **kwargs)
        return _of_file_system(system, None), path

    return resolve


def _again(original: Callable[..., Any]) -> Callable[..., Any]:
    """`write_dataset`; a check writes several times what a run writes once, so that existing files are no error."""

    def write(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("existing_data_behavior", "error") == "error":
            kwargs["existing_data_behavior"] = "overwrite_or_ignore"
        return original(*args, **kwargs)

    return write


class _ByPython:
    """This machine's files, as Arrow asks a `FileSystemHandler` for them."""

    def get_type_name(self) -> str:
        return "local"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[Any]:
        return [_info(path) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        if selector.allow_not_found and not os.path.isdir(selector.base_dir):  # noqa: PTH112
            return []
        found = [_info(os.path.join(selector.base_dir, n)) for n in os.listdir(selector.base_dir)]  # noqa: PTH118, PTH208
        if selector.recursive:
            arrow = sys.modules["pyarrow._fs"]
            for one in [f for f in found if f.type == arrow.FileType.Directory]:
                found += self.get_file_info_selector(arrow.FileSelector(one.path, recursive=True))
        return found

    def create_dir(self, path: str, recursive: bool) -> None:
        if recursive:
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
        else:
            os.mkdir(path)  # noqa: PTH102

    def delete_dir(self, path: str) -> None:
        shutil.rmtree(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        if missing_dir_ok and not os.path.isdir(path):  # noqa: PTH112
            return
        for name in os.listdir(path):  # noqa: PTH208
            inside = os.path.join(path, name)  # noqa: PTH118
            (shutil.rmtree if os.path.isdir(inside) else os.remove)(inside)  # noqa: PTH112

    def delete_root_dir_contents(self) -> None:
        """Does nothing."""

    def delete_file(self, path: str) -> None:
        os.remove(path)  # noqa: PTH107

    def move(self, source: str, target: str) -> None:
        os.replace(source, target)  # noqa: PTH105

    def copy_file(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def open_input_file(self, path: str) -> Any:
        return sys.modules["pyarrow"].OSFile(path)  # ours: it exchanges the path

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return sys.modules["pyarrow"].OSFile(path, "wb")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        return sys.modules["pyarrow"].OSFile(path, "ab")


def _info(path: str) -> Any:
    arrow = sys.modules["pyarrow._fs"]
    try:
        found = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return arrow.FileInfo(path, arrow.FileType.NotFound)
    if stat.S_ISDIR(found.st_mode):
        return arrow.FileInfo(path, arrow.FileType.Directory, mtime_ns=found.st_mtime_ns)
    return arrow.FileInfo(path, arrow.FileType.File, size=found.st_size, mtime_ns=found.st_mtime_ns)
