"""Files that were open before the walk: all writes go to copies, and the files are unchanged afterwards.

A copy replaces a file under the same file descriptor, so that whatever is written through any object or by native code
goes to the copy, and can be read back from it.
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

# A larger file is not copied: its copy is a hole of that size, unless its content can be read through the descriptor.
MOST_COPIED_BYTES = 2**30
# Shared memory is used between processes and is not left behind.
_NO_FILES = ("/dev/", "/proc/", "/memfd:")
# Writers with their own queue, which must be empty before the walk begins.
_QUEUED = (
    ("tensorboard.summary.writer.event_file_writer", "EventFileWriter"),
    ("tensorboardX.event_file_writer", "EventFileWriter"),
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter"),
)


_LAYERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.FileIO)


@dataclass(frozen=True, kw_only=True)
class _Exchanged:
    """A file that was open, and the copy under its descriptor."""

    number: int
    kept: int
    """Another descriptor of the file itself."""
    name: str
    copy: os.stat_result
    """The initial contents of the copy."""


@contextlib.contextmanager
def held(desk: Desk, kinds: tuple[type, ...], tally: Tally) -> Iterator[tuple[set[int], Callable[[], None]]]:
    """While the context lasts, files open for writing, standard streams and writable maps are not modified.

    Yields the ids of the existing writers of some types, and a function that flushes the files' buffers.
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
    """The open files for writing, text layers before the bytes below them; and the objects of some types.

    Args:
        all_of_them: False: only standard output and error, unless there are writers with a queue.
    """
    queued = tuple(k for k in (getattr(sys.modules.get(m), n, None) for m, n in _QUEUED) if k is not None)
    found = _alive({*_LAYERS, *kinds, *queued}) if all_of_them or queued else list(_standard())
    for writer in found:
        if queued and issubclass(type(writer), queued):
            with contextlib.suppress(Exception):  # the user's writer: a closed one has nothing to flush
                writer.flush()
    files = [f for f in found if issubclass(type(f), _LAYERS) and _is_written(f)]
    files.sort(key=lambda f: next(i for i, layer in enumerate(_LAYERS) if issubclass(type(f), layer)))
    return files, [o for o in found if kinds and issubclass(type(o), kinds)]


def _alive(kinds: set[type]) -> list[Any]:
    """The existing objects of some types.

    Compares exact types: there are a million objects, and proxies answer isinstance by loading what they stand for.
    """
    alive = gc.get_objects()
    types = list(map(type, alive))
    chosen = {t for t in set(types) if not kinds.isdisjoint(t.__mro__)}
    return list(itertools.compress(alive, map(chosen.__contains__, types)))


def _standard() -> Iterator[Any]:
    """Standard output and error, with the layers below them."""
    for text in (sys.__stdout__, sys.__stderr__):
        binary = getattr(text, "buffer", None)
        yield from (layer for layer in (text, binary, getattr(binary, "raw", None)) if layer is not None)


def _is_written(file: Any) -> bool:
    try:
        return not file.closed and bool(file.writable()) and file.fileno() >= 0
    except (OSError, ValueError, AttributeError):  # detached, or not backed by a file
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
    """The descriptors and names of regular files that are open for writing."""
    try:
        import fcntl

        numbers = [int(n) for n in os.listdir("/dev/fd")]  # noqa: PTH208
    except (ImportError, OSError):  # unsupported system: only files opened from now on are redirected
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
    """Put a copy of a file under its descriptor; does nothing if the file is too large."""
    import fcntl

    if desk.is_ours(name):
        return []
    flags, size = fcntl.fcntl(number, fcntl.F_GETFL), os.fstat(number).st_size
    if size > MOST_COPIED_BYTES and flags & os.O_ACCMODE == os.O_RDWR:
        return []
    try:
        ours = desk.files.get(name) or _copy(name, size, desk)
        copy = os.open(ours, flags & (os.O_ACCMODE | os.O_APPEND))
    except OSError:  # no space, or the file cannot be read
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
    """Make the copies accessible under the names that the script uses, which may contain linked folders."""
    from trainwright.seams.isolation.written_files import key_of

    by_number = {one.number: one.name for one in exchanged}
    for file in files:
        name = getattr(file, "name", None)
        if isinstance(name, (str, bytes)) and (real := by_number.get(file.fileno())) is not None:
            desk.files.setdefault(key_of(name), desk.files[real])


def _put_back(one: _Exchanged, tally: Tally) -> None:
    """Restore the file under its descriptor, unless the step closed it."""
    with contextlib.suppress(OSError):
        now = os.fstat(one.number)
        if (now.st_dev, now.st_ino) == (one.copy.st_dev, one.copy.st_ino):
            os.dup2(one.kept, one.number, os.get_inheritable(one.number))
            if (now.st_size, now.st_mtime_ns) != (one.copy.st_size, one.copy.st_mtime_ns):
                tally.files.add(one.name)
    os.close(one.kept)


def _retarget(stream: io.FileIO, number: int) -> None:
    """Make a raw stream write to another descriptor, keeping its other attributes."""
    attributes = dict(stream.__dict__)
    name = stream.name
    stream.__init__(number, "wb", closefd=False)  # type: ignore[misc]
    stream.__dict__.update({**attributes, "name": name})
