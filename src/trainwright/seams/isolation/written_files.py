"""Redirects what the user's code writes during the check to a folder of ours, and returns it when it is read."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from trainwright.seams.failures.blame import of_pipeline, passed_on

_WRITING = frozenset("wax+")
_MAKING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Devices and kernel tables are not the user's files.
_NO_FILES = ("/dev/", "/proc/", "/sys/")
# Native saves are really written up to this size, so that they can be read back; a check saves a few dozen times.
MOST_BYTES = 64 * 2**20

_open, _mkdir, _stat, _listdir, _unlink = open, os.mkdir, os.stat, os.listdir, os.unlink


class Desk:
    """A layer over the file system: only through it are writes, new folders, moves and deletions visible."""

    def __init__(self) -> None:
        self._root = tempfile.mkdtemp(prefix="trainwright-")
        self.temporary = os.path.join(self._root, "temporary")  # noqa: PTH118 (pathlib is what we stand in for)
        _mkdir(self.temporary)
        self.files: dict[str, str] = {}
        """Our file or folder for each path that was written or created."""
        self.removed: set[str] = set()
        self.saved: dict[str, Any] = {}
        """The arguments of `torch.save`, by the path of our file."""
        self.touched: set[str] = set()
        """The written files, for counting."""
        self._ended = False

    def clear(self) -> None:
        """Delete the folder; only after all patches are removed.

        A module that was imported meanwhile may hold a replacement: its calls reach the user's files again.
        """
        self._ended = True
        self.files.clear()
        self.removed.clear()
        shutil.rmtree(self._root, ignore_errors=True)

    def is_ours(self, key: str) -> bool:
        """Whether a path is not the user's: our own folder, a device."""
        return self._ended or key.startswith((self._root, *_NO_FILES))

    def seen_as(self, path: Any) -> Any:
        """The real location of a path.

        Raises:
            FileNotFoundError: it was deleted since the check began.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return path
        key = key_of(path)
        if key in self.removed:
            raise of_pipeline(FileNotFoundError(2, "No such file or directory", os.fsdecode(path)))
        return self._ours(key) or path

    def place_for(self, path: Any, *, fresh: bool = False) -> str:
        """Our file for a path to be written; it starts with the path's contents unless `fresh`."""
        key = key_of(path)
        if self.is_ours(key):
            return key
        self.touched.add(key)
        gone = key in self.removed
        self.removed.discard(key)
        if self._ours(key) is None:
            self.files[key] = ours = self._place(key)
            _make_folder(os.path.dirname(ours))  # noqa: PTH120
            if not fresh and not gone:
                with contextlib.suppress(OSError), _open(key, "rb") as old, _open(ours, "wb") as new:
                    shutil.copyfileobj(old, new, 2**20)
        return self.files[key]

    def _place(self, key: str) -> str:
        return f"{self._root}{os.sep}files{key}"

    def _ours(self, key: str) -> str | None:
        """Our file or folder for a path; also a file that a process of the script's has written at our place for it."""
        if key not in self.files and not self.is_ours(key) and key not in self.removed:
            with contextlib.suppress(OSError):
                if stat.S_ISREG(_stat(self._place(key)).st_mode):
                    self.files[key] = self._place(key)
        return self.files.get(key)

    def enter(self, path: str, ours: str) -> None:
        """Map a path to an existing file of ours."""
        self.files[path] = ours

    def make(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """`os.mkdir`; an existing folder is not an error in a dry run."""
        key = key_of(path)
        if self.is_ours(key):
            _mkdir(path, *args, **kwargs)
            return
        gone = key in self.removed
        self.removed.discard(key)
        if key not in self.files and (gone or not _exists(key)):
            self.files[key] = self._place(key)
            _make_folder(self.files[key])

    def remove(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Delete a file, or a folder with its contents; a missing one is not an error."""
        key = key_of(path)
        self._ours(key)
        for kept in [k for k in self.files if k == key or k.startswith(key + os.sep)]:
            ours = self.files.pop(kept)
            self.saved.pop(ours, None)
            with contextlib.suppress(OSError):  # so that no other process finds it
                _unlink(ours)
        self.removed.add(key)

    def move(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Rename a file, or a folder that was created."""
        self.copy(source, target)
        if key_of(source) != key_of(target):
            self.remove(source)
        return target

    def copy(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Copy a file, or a folder's redirected contents."""
        old, new = key_of(source), key_of(target)
        if os.path.isdir(self._found(old)):  # noqa: PTH112
            self.make(target)
            inside = [k for k in self.files if k.startswith(old + os.sep)]
            for kept in inside:
                self.copy(kept, new + kept[len(old) :])
            return target
        found = self._found(old)
        if os.path.isdir(self._found(new)) and args == () and kwargs == {}:  # noqa: PTH112
            new = f"{new}{os.sep}{os.path.basename(old)}"  # noqa: PTH119
        ours = self.place_for(new, fresh=True)
        with contextlib.suppress(OSError), _open(found, "rb") as read, _open(ours, "wb") as write:
            shutil.copyfileobj(read, write, 2**20)
        if found in self.saved:
            self.saved[ours] = self.saved[found]
        return target

    def _found(self, key: str) -> str:
        return self._ours(key) or key

    # Replacements for standard library calls while the layer is active

    def opening(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`open`."""

        def open_aside(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if isinstance(file, (str, bytes, os.PathLike)) and kwargs.get("opener") is None:
                if _WRITING & set(mode):
                    fresh = "w" in mode or "x" in mode
                    return passed_on(
                        original, self.place_for(file, fresh=fresh), mode.replace("x", "w"), *args, **kwargs
                    )
                file = self.seen_as(file)
            return original(file, mode, *args, **kwargs)

        return open_aside

    def opening_low(self, original: Callable[..., int]) -> Callable[..., int]:
        """`os.open`."""

        def open_aside(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if kwargs.get("dir_fd") is not None:
                return original(path, flags, *args, **kwargs)
            if flags & _MAKING:
                return original(self.place_for(path), flags & ~os.O_EXCL, *args, **kwargs)
            return original(self.seen_as(path), flags, *args, **kwargs)

        return open_aside

    def finding(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that queries a path: `os.stat` and the like."""

        def find(path: Any, *args: Any, **kwargs: Any) -> Any:
            return original(self.seen_as(path), *args, **kwargs)

        return find

    def listing(self, original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """`os.listdir`, including redirected files."""

        def listed(path: Any = ".") -> list[Any]:
            known = isinstance(path, (str, os.PathLike))
            inside, key = (self._inside(path), key_of(path)) if known else ({}, "")
            if not (inside or key in self.files or (self.removed and _exists(key))):
                return list(passed_on(original, path))
            names = passed_on(original, self.seen_as(path)) if key in self.files or _exists(key) else []
            real = passed_on(original, key) if key in self.files and _exists(key) else []
            found = dict.fromkeys([*names, *real, *inside])
            return [n for n in found if f"{key}{os.sep}{n}" not in self.removed]

        return listed

    def scanning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`os.scandir`, including redirected files."""

        def scan(path: Any = ".") -> Any:
            if not isinstance(path, (str, os.PathLike)):
                return passed_on(original, path)
            key, given = key_of(path), os.fspath(path)
            inside = self._inside(path)
            if not (inside or self.removed or key in self.files):
                return passed_on(original, path)
            entries = []
            if _exists(key):
                with passed_on(original, path) as real:
                    entries = [e for e in real if e.name not in inside]
            elif key not in self.files:
                return passed_on(original, path)
            kept = [e for e in entries if f"{key}{os.sep}{e.name}" not in self.removed]
            return _Scan([*kept, *(_Entry(given, name, ours) for name, ours in inside.items())])

        return scan

    def _inside(self, folder: Any) -> dict[str, str]:
        head = key_of(folder).rstrip(os.sep) + os.sep
        with contextlib.suppress(OSError):
            for name in _listdir(self._place(head)):
                self._ours(head + name)
        return {
            k[len(head) :]: ours
            for k, ours in list(self.files.items())
            if k.startswith(head) and os.sep not in k[len(head) :]
        }

    # torch.save and torch.load

    def saving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.save`: stores its argument unserialized."""

        def save(value: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
            named = path if isinstance(path, (str, os.PathLike)) else getattr(path, "name", None)
            if not isinstance(named, (str, os.PathLike)):
                return original(value, path, *args, **kwargs)
            ours = self.place_for(named, fresh=True)
            if named is path:
                with _open(ours, "wb") as file:
                    file.write(b"\0")
            self.saved[ours] = value
            return None

        return save

    def loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.load`, including redirected files."""

        def load(path: Any, *args: Any, **kwargs: Any) -> Any:
            named = path if isinstance(path, (str, os.PathLike)) else getattr(path, "name", None)
            if isinstance(named, (str, os.PathLike)) and (found := self.seen_as(named)) in self.saved:
                return copy.deepcopy(self.saved[found])
            return passed_on(
                original, self.seen_as(path) if isinstance(path, (str, os.PathLike)) else path, *args, **kwargs
            )

        return load


class _Entry:
    """An `os.DirEntry` for a redirected file."""

    def __init__(self, folder: Any, name: str, ours: str) -> None:
        self.name, self.path, self._ours = name, os.path.join(folder, name), ours  # noqa: PTH118

    def __fspath__(self) -> str:
        return str(self.path)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isdir(self._ours)  # noqa: PTH112

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False

    def is_junction(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return _stat(self._ours)

    def inode(self) -> int:
        return self.stat().st_ino


class _Scan(list[Any]):
    """The result of `os.scandir`: an iterable of entries that can be closed."""

    def __iter__(self) -> Iterator[Any]:
        while self:
            yield self.pop(0)

    def __next__(self) -> Any:
        if not self:
            raise of_pipeline(StopIteration())
        return self.pop(0)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *raised: object) -> None:
        self.clear()

    def close(self) -> None:
        self.clear()


def key_of(path: Any) -> str:
    """A normalized text for a path, however it is written."""
    text = os.fsdecode(path)
    return os.path.normpath(text if text.startswith(os.sep) else f"{os.getcwd()}{os.sep}{text}")  # noqa: PTH109


def _exists(path: str) -> bool:
    with contextlib.suppress(OSError):
        _stat(path)
        return True
    return False


def _make_folder(path: str) -> None:
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        if path and not _exists(path):
            _make_folder(path.rpartition(os.sep)[0])
            _mkdir(path)
