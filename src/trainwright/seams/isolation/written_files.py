"""Redirects what is written by Python's own calls to a folder of ours, and returns it when it is read."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from trainwright.seams.failures.blame import of_pipeline, passed_on

Change = tuple[Any, str, Any]
"""A replacement: owner, name, value."""

_WRITING = frozenset("wax+")
_MAKING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Devices and kernel tables are not the user's files.
_NO_FILES = ("/dev", "/proc", "/sys")
_Original = Callable[..., Any]

# What is really there, past the replacements. pathlib is among what the replacements are for.
_open, _stat, _getcwd, _listdir, _scandir = open, os.stat, os.getcwd, os.listdir, os.scandir


class Desk:
    """A layer over the file system, in a folder with a copy of each file that was written, below its own path.

    The folder is all that is known of what was written: processes that the script starts see each other's files.

    Args:
        root: an empty folder.
        touched: is told the paths of the files that were written.
        kept: folders in which what is written lasts.
    """

    def __init__(self, root: Path, touched: set[str], kept: Iterable[Path] = ()) -> None:
        self.temporary = str(root / "temporary")
        self._root, self._files = str(root), str(root / "files")
        for folder in (self.temporary, self._files):
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        self._kept = tuple(f"{folder}{os.sep}" for folder in (self._root, *_NO_FILES, *kept))
        self._touched = touched
        self._removed: set[str] = set()
        """What was there and was deleted, with all that it held: what is made there again is in our folder."""

    def key_of(self, path: Any) -> str:
        """The full path, however it is written."""
        return os.path.abspath(os.fsdecode(path))  # noqa: PTH100

    def is_ours(self, path: Any) -> bool:
        """Whether a file is not the user's: in our own folder, in one for downloads, a device."""
        return f"{self.key_of(path)}{os.sep}".startswith(self._kept)

    def seen_as(self, path: Any) -> Any:
        """The real location of a path.

        Raises:
            FileNotFoundError: it was deleted since the check began.
        """
        if not isinstance(path, (str, bytes, os.PathLike)) or self.is_ours(path):
            return path
        place = self._place(key := self.key_of(path))
        if os.path.lexists(place):
            return os.fsencode(place) if isinstance(path, bytes) else place
        if self._is_gone(key):
            raise _missing(path)
        return self._past(path)

    def place_for(self, path: Any, mode: str = "a") -> Any:
        """Our file for a path to be written; it starts with what the path holds, unless the mode says otherwise.

        Raises:
            FileNotFoundError: there is no folder for it.
            FileExistsError: the mode wants a new file.
        """
        if self.is_ours(path):
            return path
        key = self.key_of(path)
        if not self._is_folder(os.path.dirname(key)):  # noqa: PTH120
            raise _missing(path)
        if "x" in mode and self._exists(key):
            raise of_pipeline(FileExistsError(17, "File exists", os.fsdecode(path)))
        self._touched.add(key)
        self._copy(key, key, with_content=not {"w", "x"} & set(mode))
        place = self._place(key)
        return os.fsencode(place) if isinstance(path, bytes) else place

    def _past(self, path: Any) -> Any:
        """The path for what is really there; where the working folder is one that was made, the full one."""
        if not _getcwd().startswith(self._files):
            return path
        return os.fsencode(self.key_of(path)) if isinstance(path, bytes) else self.key_of(path)

    def _place(self, key: str) -> str:
        drive, below = os.path.splitdrive(key)
        return f"{self._files}{os.sep * bool(drive)}{drive.rstrip(':')}{below}"

    def _is_gone(self, key: str) -> bool:
        """Whether what was there was deleted."""
        while self._removed and key not in self._removed:
            above = os.path.dirname(key)  # noqa: PTH120
            if above == key:
                return False
            key = above
        return bool(self._removed)

    def _exists(self, key: str) -> bool:
        return os.path.lexists(self._place(key)) or (not self._is_gone(key) and _mode(key) != 0)

    def _is_folder(self, key: str) -> bool:
        return stat.S_ISDIR(_mode(self._place(key))) or (not self._is_gone(key) and stat.S_ISDIR(_mode(key)))

    def _copy(self, source: str, target: str, *, with_content: bool = True) -> None:
        """Bring a file, or a folder with all that it holds, to our place for a path."""
        place = self._place(target)
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
        if not with_content:
            return
        if self._is_folder(source):
            os.makedirs(place, exist_ok=True)  # noqa: PTH103
            for entry in self._scanned(source, source):
                self._copy(f"{source}{os.sep}{entry.name}", f"{target}{os.sep}{entry.name}")
        elif self._exists(source) and (found := self.seen_as(source)) != place:
            with _open(found, "rb") as old, _open(place, "wb") as new:
                shutil.copyfileobj(old, new, 2**20)

    def _scanned(self, key: str, given: str) -> list[Any]:
        """What a folder holds."""
        place = self._place(key)
        ours = {name: f"{place}{os.sep}{name}" for name in (_listdir(place) if os.path.isdir(place) else ())}  # noqa: PTH112
        real = []
        if not self._is_gone(key) and (stat.S_ISDIR(_mode(key)) or not os.path.isdir(place)):  # noqa: PTH112
            with _scandir(self._past(given)) as entries:
                real = [e for e in entries if e.name not in ours and not self._is_gone(f"{key}{os.sep}{e.name}")]
        elif not os.path.isdir(place):  # noqa: PTH112
            raise _missing(given)
        return [*real, *(_Entry(given, name, path) for name, path in ours.items())]

    def _made(self, path: Any) -> Any:
        """Our place for a folder that is to be made."""
        is_new = (key := self.key_of(path)) not in self._touched
        place = self.place_for(path, "x")
        if is_new:
            self._touched.discard(key)
        return place

    def _changed(self, path: Any) -> Any:
        """The file whose mode or times may change, if it is ours; None for the user's, which stays as it is."""
        found = self.seen_as(path)
        if self.is_ours(found):
            return found
        passed_on(_stat, found)  # it must exist
        return None

    # What stands for calls of the standard library

    def changes(self) -> Iterator[Change]:
        """The replacements in the standard library."""
        yield from ((owner, "open", self._opening(owner.open)) for owner in (builtins, io))
        yield os, "open", self._opening_low(os.open)
        for exchange, names in (
            (self.seen_as, ("stat", "lstat", "chdir", "listxattr", "getxattr")),
            (self._made, ("mkdir",)),
            (self.place_for, ("truncate",)),
            (self._changed, ("chmod", "chown", "utime", "setxattr")),
        ):
            yield from ((os, name, _given(getattr(os, name), exchange)) for name in names if hasattr(os, name))
        yield os, "access", self._allowing(os.access)
        yield os, "scandir", self._scanning(os.scandir)
        yield os, "listdir", self._listing(os.listdir)
        # The working folder; one that was made is known by the path that it was made as.
        yield os, "getcwd", lambda: _getcwd().removeprefix(self._files)
        yield from ((os, name, self._removing(getattr(os, name))) for name in ("remove", "unlink", "rmdir"))
        yield from ((os, name, self._moving(getattr(os, name))) for name in ("rename", "replace"))
        yield from ((os, name, self._link) for name in ("symlink", "link") if hasattr(os, name))
        yield shutil, "_use_fd_functions", False  # so that `rmtree` names full paths
        yield tempfile, "tempdir", self.temporary

    def _opening(self, original: _Original) -> _Original:
        def open_aside(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if isinstance(file, (str, bytes, os.PathLike)):
                file = self.place_for(file, mode) if _WRITING & set(mode) else self.seen_as(file)
            return passed_on(original, file, mode.replace("x", "w"), *args, **kwargs)

        return open_aside

    def _opening_low(self, original: _Original) -> _Original:
        def open_aside(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is None:
                mode = "x" if flags & os.O_EXCL else "w" if flags & os.O_TRUNC else "a"
                path = self.place_for(path, mode) if flags & _MAKING else self.seen_as(path)
            return passed_on(original, path, flags, *args, **kwargs)

        return open_aside

    def _allowing(self, original: _Original) -> _Original:
        def is_allowed(path: Any, *args: Any, **kwargs: Any) -> bool:
            try:
                return bool(original(self.seen_as(path), *args, **kwargs))
            except FileNotFoundError:
                return False

        return is_allowed

    def _scanning(self, original: _Original) -> _Original:
        def scan(path: Any = ".") -> Any:
            if not isinstance(path, (str, os.PathLike)) or self.is_ours(path):
                return passed_on(original, path)
            return _Scan(self._scanned(self.key_of(path), os.fspath(path)))

        return scan

    def _listing(self, original: _Original) -> _Original:
        def listed(path: Any = ".") -> Any:
            if not isinstance(path, (str, os.PathLike)) or self.is_ours(path):
                return passed_on(original, path)
            return [entry.name for entry in self._scanned(self.key_of(path), os.fspath(path))]

        return listed

    def _removing(self, original: _Original) -> _Original:
        is_of_folders = original is os.rmdir

        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs.get("dir_fd") is not None or self.is_ours(path):
                passed_on(original, path, *args, **kwargs)
                return
            key, given = self.key_of(path), os.fsdecode(path)
            if not self._exists(key):
                raise _missing(path)
            if self._is_folder(key) != is_of_folders:
                kind, number = (NotADirectoryError, 20) if is_of_folders else (IsADirectoryError, 21)
                raise of_pipeline(kind(number, os.strerror(number), given))
            if is_of_folders and self._scanned(key, key):
                raise of_pipeline(OSError(errno.ENOTEMPTY, "Directory not empty", given))
            self._remove(key)

        return remove

    def _remove(self, key: str) -> None:
        place = self._place(key)
        self._removed.add(key)
        if os.path.isdir(place):  # noqa: PTH112
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)  # noqa: PTH108

    def _moving(self, original: _Original) -> _Original:
        def move(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            if self.is_ours(source) and self.is_ours(target):
                passed_on(original, source, target, *args, **kwargs)
                return
            if self.is_ours(source):
                shutil.move(source, self.place_for(target, "w"))
                return
            old, new = self.key_of(source), self.key_of(target)
            if not self._exists(old):
                raise _missing(source)
            if old != new:
                self.place_for(target, "w")
                self._copy(old, new)
                self._remove(old)

        return move

    def _link(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        """A copy in place of a link: through a link, the user's file could be written."""
        old = os.path.join(os.path.dirname(self.key_of(target)), os.fsdecode(source))  # noqa: PTH118, PTH120
        self.place_for(target, "x")
        self._copy(self.key_of(old), self.key_of(target))


def _given(original: _Original, exchange: Callable[[Any], Any]) -> _Original:
    """A call with another path; without one, it is not made."""

    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, int) or kwargs.get("dir_fd") is not None:
            return passed_on(original, path, *args, **kwargs)
        found = exchange(path)
        return None if found is None else passed_on(original, found, *args, **kwargs)

    return call


class _Entry:
    """An `os.DirEntry` for a redirected file."""

    def __init__(self, folder: str, name: str, ours: str) -> None:
        self.name, self.path, self._ours = name, os.path.join(folder, name), ours  # noqa: PTH118

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isdir(self._ours)  # noqa: PTH112

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False

    is_junction = is_symlink

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return _stat(self._ours)

    def inode(self) -> int:
        return self.stat().st_ino


class _Scan(contextlib.closing[Any]):
    """The result of `os.scandir`: an iterator over entries that can be closed."""

    def __init__(self, entries: list[Any]) -> None:
        super().__init__(self)
        self._left = entries

    def __iter__(self) -> _Scan:
        return self

    def __next__(self) -> Any:
        if not self._left:
            raise of_pipeline(StopIteration())
        return self._left.pop(0)

    def close(self) -> None:
        """Forget what is left."""
        self._left = []


def _missing(path: Any) -> BaseException:
    return of_pipeline(FileNotFoundError(2, "No such file or directory", os.fsdecode(path)))


def _mode(path: str) -> int:
    """What a real path is; 0: nothing is there."""
    try:
        return _stat(path).st_mode
    except (OSError, ValueError):
        return 0
