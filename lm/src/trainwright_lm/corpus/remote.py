"""Sources in remote storage, in archives and on the Hub, by the addresses that fsspec knows (s3://, zip://::https://…).

A read that fails is tried again, and a file keeps its place in the order, so that a run resumes there.
"""

from __future__ import annotations

import gzip
import io
import re
import socket
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus.sources import ARCHIVES, HUB, TABLES, Fields, Source, StoredFile
from trainwright_lm.corpus.tables import Shelf, TableReader

# Bytes per request: a column of a parquet row group is often larger, and this bounds memory use.
_BLOCK_BYTES = 8 << 20
# Seconds before each further try: a store that is overloaded or restarts answers again within a minute.
WAITS = (1.0, 4.0, 16.0)
_MISUSED = (ImportError, TypeError, ValueError)
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


@dataclass(frozen=True, kw_only=True)
class Remote(Shelf):
    """A file system of fsspec's; files are named below the root."""

    system: Any
    root: str
    failures = (OSError, *_DAMAGED)

    def open(self, name: str) -> BinaryIO:
        return io.BufferedReader(_Stream(self.system, f"{self.root}/{name}"))

    def failed(self, name: str, error: Exception) -> ReadError:
        return ReadError(f"{self.root}/{name} could not be read: {error}. Run the same command again to resume.")


class _Stream(io.RawIOBase):
    """A remote file: after an error it is opened again; from a server that sends only whole files it is copied first."""

    def __init__(self, system: Any, path: str) -> None:
        self._given = (system, path)
        self._at = 0
        self._inner: Any = None

    def __reduce__(self) -> Any:
        return _Stream, self._given

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, to: int, whence: int = 0) -> int:
        start = self._do(lambda inner: inner.seek(0, 2)) if whence == 2 else self._at * whence
        self._at = max(start + to, 0)
        return self._at

    def readinto(self, into: Any) -> int:
        data = self._do(lambda inner: inner.read(len(into)))
        into[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
        super().close()

    def _do(self, work: Callable[[Any], Any]) -> Any:
        system, path = self._given

        def once() -> Any:
            inner, self._inner = self._inner or system.open(path, "rb", block_size=_BLOCK_BYTES), None
            try:
                if getattr(inner, "size", 0) is None:
                    raise ValueError(f"{path} has no size")
                inner.seek(self._at)
                done = work(inner)
            except ValueError:  # fsspec's: the server does not answer range requests
                inner = tempfile.TemporaryFile()  # noqa: SIM115
                system.get_file(path, inner)
                inner.seek(self._at)
                done = work(inner)
            self._inner = inner
            return done

        return steadily(once)


def steadily(work: Callable[..., Any], *given: Any) -> Any:
    """Do something several times if it fails.

    Raises:
        ConnectionError: with the cause, if it still fails or always will.
    """
    waits = iter(WAITS)
    while True:
        try:
            return work(*given)
        except Exception as error:  # of fsspec's file systems, each of which has its own
            causes: list[Any] = [error]
            while causes[-1].__cause__:  # fsspec calls any answer but the file FileNotFoundError
                causes.append(causes[-1].__cause__)
            why, wait = f"{type(causes[-1]).__name__}: {causes[-1]}", next(waits, None)
            # The exact class: a stream that this one reads has tried already.
            if wait is None or type(error) is ConnectionError or not _passes(causes):
                raise ConnectionError(why) from error
            print(f"{why}; trying again in {wait:g} seconds", file=sys.stderr)
            time.sleep(wait)


def _passes(causes: list[Any]) -> bool:
    """Whether the same may succeed later: what is forbidden, missing or unknown will not."""
    for one in causes:
        status = getattr(one, "status", None) or getattr(getattr(one, "response", None), "status_code", None)
        if isinstance(status, int):
            return status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    last = causes[-1]
    if isinstance(last, socket.gaierror):
        return bool(last.errno != socket.EAI_NONAME)
    refused = "Credentials" in type(last).__name__  # botocore's NoCredentialsError, google's DefaultCredentialsError
    return not refused and not isinstance(last, (FileNotFoundError, PermissionError, IsADirectoryError, *_MISUSED))


def open_remote(name: str, fields: Fields, suffixes: tuple[str, ...], largest: int, *, alone: bool = False) -> Source:
    """The tables and source files at an address, or in a local archive: a file, an archive, a folder, or a pattern with *.

    Args:
        alone: Whether this is the only source: a folder that holds a whole archive is then no group.

    Raises:
        UsageError: if fsspec does not know this kind of address, or needs another package for it.
        ReadError: if it cannot be reached, or has no such files.
    """
    import fsspec

    ends = (*TABLES, *suffixes)
    # zip://::a.zip and zip://a.zip mean the archive, zip://b::a.zip what is in it.
    chain = re.fullmatch(r"(zip|tar)://(?:(.*?)::)?(.*)", name)
    archive, inside, plain = chain.groups() if chain else ("", "", name)
    address = plain if "://" in plain else f"file://{Path(plain).expanduser().absolute()}"
    if not archive and address.lower().endswith(ARCHIVES):
        archive = "zip" if address.lower().endswith(".zip") else "tar"
    try:
        system, path = steadily(fsspec.core.url_to_fs, address)
        if archive:
            steadily(system.info, path)  # zipfile takes a file that is not there for one that is no archive
            how = {"compression": "gzip"} if address.lower().endswith("gz") else {}
            system, path = fsspec.filesystem(archive, fo=_Stream(system, path), **how), inside or ""
        single = path.endswith(ends) and "*" not in path
        root = path.partition("*")[0].rpartition("/")[0] if single or "*" in path else path.rstrip("/")
        find = (lambda _: [path]) if single else system.glob if "*" in path else system.find
        found = sorted(steadily(find, path))
        about = {file: steadily(system.info, file) for file in found if file.endswith(ends)}
    except (OSError, *_DAMAGED) as error:
        if isinstance(error.__cause__, _MISUSED):
            raise UsageError(
                f"{name} cannot be read: {error}. It needs a form that fsspec knows, as in github://OWNER:NAME@REVISION/, and "
                'its package: pip install "trainwright[lm-remote]" for s3 and https.'
            ) from error
        what = "must be a whole archive" if isinstance(error, _DAMAGED) else "could not be reached"
        raise ReadError(f"{name} {what}: {error}.") from error
    if not about:
        raise ReadError(f"{name} has no files that end in {', '.join(ends)}.")
    if (
        archive
        and alone
        and not path
        and len(tops := {file.partition("/")[0] if "/" in file else "" for file in found}) == 1
    ):
        root = tops.pop()
    keys = ("size", "ETag", "LastModified", "Last-Modified", "mtime")
    marks = [(file, *(one.get(key) for key in keys)) for file, one in about.items()]
    files = [StoredFile(name=file.removeprefix(root).lstrip("/"), size=one["size"] or 0) for file, one in about.items()]
    reader = TableReader(source=name, largest=largest, fields=fields, shelf=Remote(system=system, root=root))
    mark = xxhash.xxh3_128_hexdigest(repr(marks).encode())
    return Source(name=name, own=True, files=files, mark=mark, read=reader)


def open_hub(name: str, fields: Fields, largest: int) -> Source:
    """The tables of `hub:OWNER/NAME`, `hub:OWNER/NAME/folder` or `hub:OWNER/NAME@revision`, streamed: nothing is stored.

    Opening the source pins the revision, so an interrupted run resumes with the same files.

    Raises:
        UsageError: if the name does not have this form.
        ReadError: if the Hub or the dataset cannot be reached, or has no tables.
    """
    from huggingface_hub import HfApi, HfFileSystem
    from huggingface_hub.errors import HfHubHTTPError

    repository, revision, folder = _parsed(name)
    try:
        api = HfApi()
        pinned = api.dataset_info(repository, revision=revision).sha
        entries = list(api.list_repo_tree(repository, recursive=True, revision=pinned, repo_type="dataset"))
    except (*HfHubHTTPError.__bases__, OSError, ValueError) as error:  # the bases are its HTTP library's errors
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = " ".join([f"{type(error).__name__}:", *lines[:2]])
        raise ReadError(f"The data set {repository} could not be reached on the Hub ({reason}).") from error
    files = [
        StoredFile(name=entry.path, size=entry.size)
        for entry in entries
        if getattr(entry, "size", None) is not None
        and entry.path.lower().endswith(TABLES)
        and entry.path.startswith(folder)
    ]
    if not files:
        where = f"{repository}/{folder}" if folder else repository
        raise ReadError(f"The data set {where} has no {', '.join(TABLES)} files.")
    root = f"datasets/{repository}@{pinned}"
    reader = TableReader(source=name, largest=largest, fields=fields, shelf=Remote(system=HfFileSystem(), root=root))
    files.sort(key=lambda file: file.name)
    return Source(name=name, own=False, files=files, mark=str(pinned), read=reader)


def _parsed(name: str) -> tuple[str, str | None, str]:
    """The repository, revision and folder of hub:OWNER/NAME@revision/folder."""
    parts = name.removeprefix(HUB).strip("/").split("/")
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"A data set on the Hub must be named {HUB}OWNER/NAME; got {name}.")
    last, _, revision = parts[1].partition("@")
    return f"{parts[0]}/{last}", revision or None, "/".join(parts[2:])
