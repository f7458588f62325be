"""Files that were open before the walk: it writes into copies of them, whoever writes, and they are as they were after it.

A copy takes the place of a file under the file's own number, so that what is written through any object, or by native
code, goes there, and what is read again is found there.
"""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.seams.isolation.open_maps import private
from trainwright.seams.isolation.tally import Tally
from trainwright.seams.isolation.written_files import Desk

# A larger file is not copied: its copy is a hole of that size, unless its content can be read through its number.
MOST_COPIED_BYTES = 2**30
# Shared memory is between processes, and not left behind.
_NO_FILES = ("/dev/", "/proc/", "/memfd:")
# Writers with a queue of their own, which is to be empty before the walk begins.
_QUEUED = (
    ("tensorboard.summary.writer.event_file_writer", "EventFileWriter"),
    ("tensorboardX.event_file_writer", "EventFileWriter"),
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter"),
)


_LAYERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.FileIO)


@dataclass(frozen=True, kw_only=True)
class _Exchanged:
    """A file that was open, and the copy that stands under its number."""

    number: int
    kept: int
    """Another number of the file itself."""
    name: str
    copy: os.stat_result
    """The copy as it was at first."""


@contextlib.contextmanager
def held(desk: Desk, kinds: tuple[type, ...], tally: Tally) -> Iterator[tuple[set[int], Callable[[], None]]]:
    """Files open for writing, standard output and error, and writable maps take nothing while the context lasts.

    Gives the identities of the writers of some kinds that there are now, and a function that empties the files' buffers.
    """
    opened = list(_open_for_writing())
    files, writers = _objects(kinds, all_of_them=any(n > 2 for n, _ in opened))
    _flush(files)
    positions = [(f, _position(f)) for f in files if not isinstance(f, io.FileIO)]
    streams = [(f, f.fileno()) for f in files if isinstance(f, io.FileIO) and f.fileno() in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    exchanged: list[_Exchanged] = []
    try:
        for number, name in opened:
            exchanged += _exchange(number, name, desk)
        _enter_names(files, exchanged, desk)
        taken = {one.number for one in exchanged}
        for stream, number in streams:
            if number not in taken:
                _retarget(stream, nowhere)
        with private():
            yield {id(w) for w in writers}, lambda: _flush(files)
    finally:
        for stream, number in streams:
            if not stream.closed and stream.fileno() == nowhere:
                _retarget(stream, number)
        os.close(nowhere)
        for one in exchanged:
            _put_back(one, tally)
        for file, position in positions:
            if position is not None and not file.closed:
                with contextlib.suppress(OSError, ValueError):
                    file.seek(position)


def _objects(kinds: tuple[type, ...], *, all_of_them: bool) -> tuple[list[Any], list[Any]]:
    """The open files that are written, text before the bytes below it; and the objects of some kinds.

    Args:
        all_of_them: else standard output and error are enough, unless there are writers with a queue.
    """
    queued = tuple(k for k in (getattr(sys.modules.get(m), n, None) for m, n in _QUEUED) if k is not None)
    found = _alive({*_LAYERS, *kinds, *queued}) if all_of_them or queued else list(_standard())
    for writer in found:
        if queued and issubclass(type(writer), queued):
            with contextlib.suppress(Exception):  # the user's writer: one that was closed has nothing to flush
                writer.flush()
    files = [f for f in found if issubclass(type(f), _LAYERS) and _is_written(f)]
    files.sort(key=lambda f: next(i for i, layer in enumerate(_LAYERS) if issubclass(type(f), layer)))
    return files, [o for o in found if kinds and issubclass(type(o), kinds)]


def _alive(kinds: set[type]) -> list[Any]:
    """The objects of some kinds that there are.

    By type alone: there are a million objects, and those that stand in for others answer isinstance by loading them.
    """
    alive = gc.get_objects()
    types = list(map(type, alive))
    chosen = {t for t in set(types) if not kinds.isdisjoint(t.__mro__)}
    return list(itertools.compress(alive, map(chosen.__contains__, types)))


def _standard() -> Iterator[Any]:
    """Standard output and error with the layers below them."""
    for text in (sys.__stdout__, sys.__stderr__):
        binary = getattr(text, "buffer", None)
        yield from (layer for layer in (text, binary, getattr(binary, "raw", None)) if layer is not None)


def _is_written(file: Any) -> bool:
    try:
        return not file.closed and bool(file.writable()) and file.fileno() >= 0
    except (OSError, ValueError, AttributeError):  # detached, or no file below it
        return False


def _flush(files: Sequence[Any]) -> None:
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            if not file.closed:
                file.flush()


def _position(file: Any) -> Any:
    try:
        return file.tell() if file.seekable() and stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except (OSError, ValueError):
        return None


def _open_for_writing() -> Iterator[tuple[int, str]]:
    """The numbers and names of regular files that are open for writing."""
    try:
        import fcntl

        numbers = [int(n) for n in os.listdir("/dev/fd")]  # noqa: PTH208
    except (ImportError, OSError):  # not on such a system: only what is opened from now on is kept aside
        return
    for number in numbers:
        with contextlib.suppress(OSError):
            flags, known = fcntl.fcntl(number, fcntl.F_GETFL), os.fstat(number)
            if stat.S_ISREG(known.st_mode) and known.st_nlink and flags & os.O_ACCMODE != os.O_RDONLY:
                name = _name_of(number)
                if name and not name.startswith(_NO_FILES):
                    yield number, name


def _name_of(number: int) -> str:
    if sys.platform == "darwin":
        import fcntl

        return fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode()  # type: ignore[attr-defined]
    return os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115


def _exchange(number: int, name: str, desk: Desk) -> list[_Exchanged]:
    """Put a copy of a file under its number; nothing where it is too large for that."""
    import fcntl

    if desk.is_ours(name):
        return []
    flags, size = fcntl.fcntl(number, fcntl.F_GETFL), os.fstat(number).st_size
    if size > MOST_COPIED_BYTES and flags & os.O_ACCMODE == os.O_RDWR:
        return []
    try:
        ours = desk.files.get(name) or _copy(name, size, desk)
        copy = os.open(ours, flags & (os.O_ACCMODE | os.O_APPEND))
    except OSError:  # no room, or the file cannot be read
        return []
    try:
        kept = os.dup(number)
        os.lseek(copy, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(copy, number, os.get_inheritable(number))
        return [_Exchanged(number=number, kept=kept, name=name, copy=os.fstat(copy))]
    finally:
        os.close(copy)


def _copy(name: str, size: int, desk: Desk) -> str:
    ours = desk.place_for(name, fresh=True)
    desk.touched.discard(name)
    with open(ours, "wb") as new:  # noqa: PTH123
        if size > MOST_COPIED_BYTES:
            new.truncate(size)
        else:
            with open(name, "rb") as old:  # noqa: PTH123
                shutil.copyfileobj(old, new, 2**20)
    return ours


def _enter_names(files: Sequence[Any], exchanged: Sequence[_Exchanged], desk: Desk) -> None:
    """Let the copies be found by the names that the script uses: a folder on the way may be a link."""
    from trainwright.seams.isolation.written_files import key_of

    by_number = {one.number: one.name for one in exchanged}
    for file in files:
        name = getattr(file, "name", None)
        if isinstance(name, (str, bytes)) and (real := by_number.get(file.fileno())) is not None:
            desk.files.setdefault(key_of(name), desk.files[real])


def _put_back(one: _Exchanged, tally: Tally) -> None:
    """Give a number its file again, unless the step closed it."""
    with contextlib.suppress(OSError):
        now = os.fstat(one.number)
        if (now.st_dev, now.st_ino) == (one.copy.st_dev, one.copy.st_ino):
            os.dup2(one.kept, one.number, os.get_inheritable(one.number))
            if (now.st_size, now.st_mtime_ns) != (one.copy.st_size, one.copy.st_mtime_ns):
                tally.files.add(one.name)
    os.close(one.kept)


def _retarget(stream: io.FileIO, number: int) -> None:
    """Let a raw stream write to another number; what else it has stays."""
    attributes = dict(stream.__dict__)
    name = stream.name
    stream.__init__(number, "wb", closefd=False)  # type: ignore[misc]
    stream.__dict__.update({**attributes, "name": name})
