"""Sources of code: this environment's packages, folders, git checkouts, tables, the Hub. All share one iterator.

A source yields items in a fixed order: raw bytes and where they came from. `text_of` reports problems with the content
(empty, not UTF-8, ...). An item that could not be read carries the reason, and the work continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated

from cyclopts import Parameter

INSTALLED = "installed"
HUB = "hub:"

# Hand-written code rarely reaches a megabyte; the Stack (Kocetkov and others, 2022) also drops larger files.
LARGEST_BYTES = 1_000_000

TABLES = (".parquet", ".jsonl", ".jsonl.gz", ".ndjson", ".json.gz")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """A position in a source: the next file, and the next item in it."""

    file: int = 0
    item: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One file or row, unprocessed."""

    content: bytes
    path: str
    group: str
    licence: str | None
    after: Cursor = Cursor(item=1)
    """The position from which the source continues after this item."""
    share: float = 1.0
    """The fraction of the source seen up to and including this item, 0 to 1."""
    problem: str = ""
    """Why `content` is missing: unreadable, huge or corrupt."""
    size: int = 0
    """The size in bytes if it is known without the content; 0: the size of the content."""

    @property
    def bytes(self) -> int:
        return self.size or len(self.content)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """A file of a source: source code, or a table."""

    name: str
    """Its path, or its address below the source's root."""
    size: int = 0
    """-1: it cannot be read."""
    path: str = ""
    """Of source code on this machine, what is known without reading; as of an item."""
    group: str = ""
    licence: str | None = None
    time_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Source:
    """Files or rows, in the same order each time."""

    name: str
    """The name that the user gave."""
    own: bool
    """Whether the user chose this code: files without a known license are then kept."""
    files: Sequence[StoredFile]
    mark: str
    """Changes when the source's content changes, as far as names, sizes and times show it."""
    read: Callable[[StoredFile, int], Iterator[Item]]
    """Gives the items of a file from a number on; place and share are those in the file."""

    def sizes(self) -> list[int]:
        """The bytes of each file, in order."""
        return [max(file.size, 0) for file in self.files]

    def part(self, first: int, end: int) -> Source:
        """The same source with these files alone."""
        return replace(self, files=self.files[first:end])

    def items(self, start: Cursor) -> Iterator[Item]:
        """All items from `start` on."""
        sizes = [size + 1 for size in self.sizes()]
        ends, total = list(accumulate(sizes)), sum(sizes)
        for number in range(start.file, len(self.files)):
            for item in self.read(self.files[number], start.item if number == start.file else 0):
                share = (ends[number] - (1 - item.share) * sizes[number]) / total
                yield replace(item, after=replace(item.after, file=number), share=share)


@dataclass(frozen=True, kw_only=True)
class Fields:
    """A table's column names; "" selects the first of the usual names that exists."""

    text: Annotated[str, Parameter(name="--text-field")] = ""
    """The table column with the text. Default: content, text or code."""
    path: Annotated[str, Parameter(name="--path-field")] = ""
    """The table column with the file's path. Default: path and some others."""
    group: Annotated[str, Parameter(name="--group-field")] = ""
    """The table column with the repository. Default: repo_name, group and some others."""
    licence: Annotated[str, Parameter(name=("--licence-field", "--license-field"))] = ""
    """The table column with the license. Default: license and some others."""


def is_own(name: str) -> bool:
    """Whether the user chose this source's code: a folder or a table."""
    return name != INSTALLED and not name.startswith(HUB)


def text_of(item: Item, largest: int = LARGEST_BYTES) -> tuple[str, str]:
    """The item's text and "", or "" and the problem: unreadable, huge, corrupt, empty, binary or not-utf-8.

    A byte order mark is removed, and line ends become "\\n".
    """
    content = item.content
    if item.problem:
        return "", item.problem
    if len(content) > largest:
        return "", "huge"
    if not content.strip():
        return "", "empty"
    if b"\0" in content:
        return "", "binary"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "not-utf-8"
    return (text.replace("\r\n", "\n") if "\r" in text else text), ""
