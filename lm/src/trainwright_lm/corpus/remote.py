"""Sources in remote storage, by the addresses that fsspec knows (s3://, gs://, https://, tar://::https://…): tables and code.

Nothing is stored. A read that fails is tried again, and a file keeps its place in the order, so that a run resumes there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import xxhash

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus.sources import TABLES, Fields
from trainwright_lm.corpus.tables import TableSource

# Bytes per request: a column of a parquet row group is often larger, and this bounds memory use.
_BLOCK_BYTES = 8 << 20
# Seconds before each further try: a store that is overloaded or restarts answers again within a minute.
WAITS = (1.0, 4.0, 16.0)
_ARCHIVES = (".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Files in a file system of fsspec's."""

    system: Any
    root: str
    files: tuple[tuple[str, int], ...]
    """Their names below the root, and their bytes."""
    mark: str
    """Changes when one of the files changes."""
    errors: tuple[type[Exception], ...] = (OSError,)
    """What its streams raise."""

    def names(self) -> Sequence[str]:
        return [file for file, _ in self.files]

    def open(self, name: str) -> BinaryIO:
        try:
            stream = self._steady(self.system.open)(f"{self.root}/{name}", "rb", block_size=_BLOCK_BYTES)
        except OSError as error:
            raise self.failed(name, error) from error
        if (cache := getattr(stream, "cache", None)) is not None:
            cache.fetcher = self._steady(cache.fetcher)
        return cast("BinaryIO", stream)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return (OSError, *self.errors)

    def failed(self, name: str, error: Exception) -> ReadError:
        return ReadError(f"{self.root}/{name} could not be read: {error}. Run the same command again to resume.")

    def size(self, name: str) -> int:
        return dict(self.files)[name]

    def state(self) -> str:
        return self.mark

    def part(self, first: int, end: int) -> Remote:
        return replace(self, files=self.files[first:end])

    def _steady(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same, tried several times."""

        def tried(*given: Any, waits: Sequence[float] = WAITS, **named: Any) -> Any:
            try:
                return work(*given, **named)
            except (FileNotFoundError, PermissionError):
                raise
            except self.errors as error:
                if not waits:
                    raise ConnectionError(f"{type(error).__name__}: {error}") from error
                time.sleep(waits[0])
                return tried(*given, waits=waits[1:], **named)

        return tried


def open_remote(name: str, fields: Fields, suffixes: tuple[str, ...], largest: int) -> TableSource:
    """The tables and source files at an address: a file, an archive, a folder, or a pattern with *.

    Raises:
        UsageError: if fsspec does not know this kind of address, or needs another package for it.
        ReadError: if it cannot be reached, or has no such files.
    """
    import fsspec

    ends = (*TABLES, *suffixes)
    try:
        system, path = fsspec.core.url_to_fs(f"tar://::{name}" if name.endswith(_ARCHIVES) else name)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f'{name} cannot be read: {error}. pip install "trainwright[lm-remote]" knows s3 and https.'
        ) from error
    single = path.endswith(ends) and "*" not in path
    root = path.partition("*")[0].rpartition("/")[0] if single or "*" in path else path.rstrip("/")
    errors = (OSError, *([sys.modules["aiohttp"].ClientError] if "aiohttp" in sys.modules else []))
    try:
        found = [path] if single else system.glob(path) if "*" in path else system.find(path)
        about = {file: system.info(file) for file in sorted(found) if file.endswith(ends)}
    except errors as error:
        raise ReadError(f"{name} could not be reached: {type(error).__name__}: {error}.") from error
    if not about:
        raise ReadError(f"{name} has no files that end in {', '.join(ends)}.")
    marks = [
        (file, *(one.get(key) for key in ("size", "ETag", "LastModified", "mtime"))) for file, one in about.items()
    ]
    files = tuple((file.removeprefix(root).lstrip("/"), one["size"] or 0) for file, one in about.items())
    shelf = Remote(
        system=system, root=root, files=files, mark=xxhash.xxh3_128_hexdigest(repr(marks).encode()), errors=errors
    )
    return TableSource(name=name, own=True, largest=largest, fields=fields, shelf=shelf)
