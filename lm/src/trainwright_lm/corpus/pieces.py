"""The documents gathered so far, on disk in pieces, each with the position from which gathering resumes.

A piece is an Arrow file, written atomically and memory-mapped for reading, so a text takes memory only while it is
in use. A document's position counts through all pieces.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainwright_lm.atomic import replacing
from trainwright_lm.corpus.dedup import PERMUTATIONS, Prints, shingles, signature, text_hash
from trainwright_lm.corpus.funnel import Funnel, as_json, from_json
from trainwright_lm.corpus.sources import Cursor
from trainwright_lm.documents import Document

# A piece ends after this many bytes of kept text, or this many bytes seen. This limits both memory use and the work
# that a killed run repeats.
PIECE_BYTES = 8 << 20
PIECE_SEEN_BYTES = 256 << 20

_SCHEMA = pa.schema(
    [
        ("text", pa.large_string()),
        ("path", pa.string()),
        ("group", pa.string()),
        ("licence", pa.string()),
        ("size", pa.int64()),
        ("hash", pa.binary(16)),
        ("signature", pa.binary(4 * PERMUTATIONS)),
    ]
)
_ABOUT = b"trainwright"
# Maximum number of pieces mapped at once.
_OPEN = 8


@dataclass(frozen=True, kw_only=True)
class GatherState:
    """The state of the gathering."""

    source: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    finished: bool = False
    funnel: Funnel = field(default_factory=Funnel)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentRow:
    """A gathered document without its text."""

    path: str
    group: str
    licence: str | None
    size: int
    """Bytes of the text."""


class PieceWriter:
    """Collects documents and writes them as the next piece."""

    def __init__(self, folder: Path, number: int, funnel: Funnel) -> None:
        """`funnel`: of everything gathered, which the caller keeps up to date."""
        self._folder, self._number, self._funnel = folder, number, funnel
        self._rows: list[dict[str, Any]] = []
        self._kept, self._seen = funnel.kept.bytes, funnel.seen.bytes

    @property
    def full(self) -> bool:
        """Whether to call `write` now; depends only on what was seen, never on time."""
        kept, seen = self._funnel.kept.bytes - self._kept, self._funnel.seen.bytes - self._seen
        return kept >= PIECE_BYTES or seen >= PIECE_SEEN_BYTES

    def add(self, document: Document, size: int) -> None:
        """Add a document of this many bytes."""
        marks = {"hash": text_hash(document.text), "signature": signature(shingles(document.text)).tobytes()}
        self._rows.append({**asdict(document), "size": size, **marks})

    def write(self, place: GatherState) -> None:
        """Write the piece and begin the next one; `place` is the position from which gathering resumes after it."""
        about = {**asdict(place), "funnel": as_json(place.funnel)}
        schema = _SCHEMA.with_metadata({_ABOUT: json.dumps(about).encode()})
        with replacing(self._folder / f"{self._number:06d}.arrow") as stream, pa.ipc.new_file(stream, schema) as writer:
            if self._rows:
                writer.write_table(pa.Table.from_pylist(self._rows, schema=schema))
        self._number += 1
        self._rows, self._kept, self._seen = [], self._funnel.kept.bytes, self._funnel.seen.bytes


class Pieces:
    """The pieces of a folder, for reading."""

    def __init__(self, folder: Path) -> None:
        # In one folder; in one per shard where several tasks gathered.
        self._files = sorted(folder.rglob("[0-9]*.arrow"))
        self.count = len(self._files)
        self._mapped = lru_cache(maxsize=_OPEN)(self._map)
        self._sizes = [self._mapped(number).num_rows for number in range(self.count)]
        self._ends = list(accumulate(self._sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def place(self) -> GatherState:
        """The position from which gathering resumes."""
        return self._place(self.count - 1) if self.count else GatherState()

    def funnel(self) -> Funnel:
        """The funnel of everything gathered so far."""
        total = Funnel()
        for number, file in enumerate(self._files):
            if number + 1 == self.count or self._files[number + 1].parent != file.parent:
                total.add(self._place(number).funnel)
        return total

    def prints(self, file: Path) -> Prints:
        """The data that deduplication needs; the signatures are collected in a file."""
        hashes = np.empty(len(self), dtype="V16")
        signatures = np.lib.format.open_memmap(  # a file without rows cannot be mapped
            file, mode="w+", dtype=np.uint32, shape=(max(len(self), 1), PERMUTATIONS)
        )
        for number, size in enumerate(self._sizes):
            if size:
                table, rows = self._mapped(number), slice(self._ends[number] - size, self._ends[number])
                hashes[rows] = _fixed(table["hash"], "V16")
                signatures[rows] = _fixed(table["signature"], np.uint32).reshape(size, -1)
        return Prints(hashes=hashes, signatures=signatures[: len(self)])

    def text(self, position: int) -> str:
        """The text of one document."""
        number = bisect_right(self._ends, position)
        row = position - (self._ends[number] - self._sizes[number])
        return str(self._mapped(number)["text"][row].as_py())

    def rows(self) -> Iterator[DocumentRow]:
        """All documents without their texts, in order."""
        for number in range(self.count):
            for values in self._mapped(number).select(["path", "group", "licence", "size"]).to_pylist():
                yield DocumentRow(**values)

    def documents(self, chosen: NDArray[np.bool_]) -> Iterator[Document]:
        """The selected documents, in order; `chosen` is indexed by position."""
        return chain.from_iterable(self.piece(number, chosen) for number in range(self.count))

    def piece(self, number: int, chosen: NDArray[np.bool_]) -> Iterator[Document]:
        """The selected documents of one piece."""
        table = self._mapped(number).select(["text", "path", "group", "licence"])
        first = self._ends[number] - self._sizes[number]
        for row in np.flatnonzero(chosen[first : self._ends[number]]).tolist():
            yield Document(**{name: table[name][row].as_py() for name in table.column_names})

    def _map(self, number: int) -> pa.Table:
        with pa.memory_map(str(self._files[number])) as stream:
            return pa.ipc.open_file(stream).read_all()

    def _place(self, number: int) -> GatherState:
        about = json.loads(self._mapped(number).schema.metadata[_ABOUT])
        return GatherState(**{**about, "cursor": Cursor(**about["cursor"]), "funnel": from_json(about["funnel"])})


def _fixed(column: pa.ChunkedArray, dtype: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"".join(column.to_pylist()), dtype=dtype)
