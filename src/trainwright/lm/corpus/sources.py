"""Where source code comes from: this environment's packages, folders, git checkouts, tables, the Hub. One iterator.

A source yields items in an order that stays: raw bytes and where they came from. What is wrong with one (empty, no
UTF-8, ...) is for `text_of` to say; an item that could not be read at all says so itself, and the work goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

INSTALLED = "installed"
HUB = "hub:"

# Nobody writes a megabyte of code by hand; the Stack (Kocetkov and others, 2022) drops larger files, too.
LARGEST_BYTES = 1_000_000

TABLES = (".parquet", ".jsonl", ".jsonl.gz", ".ndjson", ".json.gz")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """A place in a source: the file, and the item in it, that come next."""

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
    """How much of the source has been seen with this item, 0 to 1."""
    problem: str = ""
    """Why there is no `content`: unreadable, huge or corrupt."""
    size: int = 0
    """Its bytes where they are known without the content; otherwise those of the content."""

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
        """Whether the user named it as code of his choice: what has no known license is then kept."""

    def fingerprint(self) -> str:
        """Changes when the source's content does, as far as names, sizes and times tell."""

    def items(self, start: Cursor) -> Iterator[Item]:
        """All items from `start` on."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """A table's columns by their names; "" is the first that is there of the usual ones."""

    text: str = ""
    path: str = ""
    group: str = ""
    licence: str = ""


def is_own(name: str) -> bool:
    """Whether a source of this name is code of the user's choice, file by file: a folder or a table."""
    return name != INSTALLED and not name.startswith(HUB)


def text_of(item: Item, largest: int = LARGEST_BYTES) -> tuple[str, str]:
    """The item's text and "", or "" and what is wrong with it: unreadable, huge, corrupt, empty, binary or not-utf-8.

    A byte order mark is left away and lines end in "\\n".
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
