"""Sources of code: this environment's packages, folders, git checkouts, tables, the Hub. All share one iterator.

A source yields items in a fixed order: raw bytes and where they came from. `text_of` reports problems with the content
(empty, not UTF-8, ...). An item that could not be read carries the reason, and the work continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Protocol

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
    after: Cursor
    """The position from which the source continues after this item."""
    share: float
    """The fraction of the source seen up to and including this item, 0 to 1."""
    problem: str = ""
    """Why `content` is missing: unreadable, huge or corrupt."""
    size: int = 0
    """The size in bytes if it is known without the content; 0: the size of the content."""

    @property
    def bytes(self) -> int:
        return self.size or len(self.content)


class Source(Protocol):
    """Files or rows, in the same order each time."""

    @property
    def name(self) -> str:
        """The name that the user gave."""

    @property
    def own(self) -> bool:
        """Whether the user chose this code: files without a known license are then kept."""

    def fingerprint(self) -> str:
        """Changes when the source's content changes, as far as names, sizes and times show it."""

    def items(self, start: Cursor) -> Iterator[Item]:
        """All items from `start` on."""

    def sizes(self) -> list[int]:
        """The bytes of each file, in order."""

    def part(self, first: int, end: int) -> Source:
        """The same source with these files alone."""


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
