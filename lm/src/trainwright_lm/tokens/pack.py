"""Token ids on disk, two bytes each if the vocabulary allows it, and the windows that training reads from them.

A token file contains a header, the ids, zeros up to a multiple of eight bytes, and the start of each document:

    8 bytes magic | version, bytes a token (uint32) | vocabulary size, end id, documents, tokens (uint64)
    | checksum of these and of the starts (uint32) | zeros up to byte 64 | ids (uint16 or uint32) | starts (uint64)

All numbers are little-endian. Each document ends with the end token.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwright.errors import ReadError, UsageError

_MAGIC = b"TRWTOKEN"
_VERSION = 1
_FIELDS = struct.Struct("<8sIIQQQQ")
_CHECKSUM = struct.Struct("<I")
_HEADER_BYTES = 64
_START_BYTES = 8
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenFile:
    """The ids of all documents, memory-mapped: only the parts that are read take memory."""

    path: Path
    tokens: NDArray[Any]
    """The ids of all documents, each followed by its end token: uint16 or uint32."""
    starts: NDArray[np.uint64]
    """(documents + 1,) The start of each document in `tokens`, and the end of the last one."""
    vocabulary_size: int
    end_id: int

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1


def open_tokens(file: Path) -> TokenFile:
    """Open a token file after validating its header, length and document index.

    Raises:
        ReadError: if it is missing, truncated, of another version or not a token file.
    """
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            head = opened.read(_HEADER_BYTES)
    except OSError as error:
        raise _unreadable(file, f"it cannot be opened ({error})") from error
    if not head.startswith(_MAGIC):
        raise _unreadable(file, "it is another kind of file")
    if len(head) < _HEADER_BYTES:
        raise _unreadable(file, f"it ends within its header, after {size} bytes")
    header = _Header.read(head)
    if header.version != _VERSION:
        raise _unreadable(file, f"it has format version {header.version}, but this version reads {_VERSION}")
    if header.width not in (2, 4) or size != header.file_bytes:
        raise _unreadable(file, f"it has {size:,} bytes, but its header says {header.file_bytes:,}")
    mapped = np.memmap(file, dtype=np.uint8, mode="r")
    ids = mapped[_HEADER_BYTES : _HEADER_BYTES + header.tokens * header.width]
    starts = mapped[header.starts_at :]
    if zlib.crc32(starts.data, zlib.crc32(header.packed())) != header.checksum:
        raise _unreadable(file, "its checksum does not match its header and index")
    return TokenFile(
        path=file,
        tokens=ids.view(f"<u{header.width}"),
        starts=starts.view("<u8"),
        vocabulary_size=header.vocabulary_size,
        end_id=header.end_id,
    )


class TokenWriter:
    """Writes a token file document by document, as a context manager; memory use does not grow with the file.

    Ids go to FILE.part and starts to FILE.part-starts; leaving the `with` turns them into FILE atomically. If an
    exception leaves the block, FILE is not written, and the parts are removed, or kept with `resume`. A resuming writer
    continues after the last whole document that an earlier one (killed or ended by an exception) put on disk;
    `documents` is the number of these.
    """

    def __init__(self, file: Path, vocabulary_size: int, *, end_id: int, resume: bool = False) -> None:
        if not 0 <= end_id < vocabulary_size:
            raise UsageError(
                f"The end token's id must be less than the vocabulary size, {vocabulary_size}; got {end_id}."
            )
        self.documents = 0
        self.tokens = 0
        self._file = file
        self._vocabulary_size = vocabulary_size
        self._end_id = end_id
        self._resume = resume
        self._type = np.dtype("<u2" if vocabulary_size <= 1 << 16 else "<u4")
        self._part = file.with_name(file.name + ".part")
        self._starts_part = file.with_name(file.name + ".part-starts")

    def __enter__(self) -> TokenWriter:
        """Raises ReadError if the parts to resume were written for another vocabulary."""
        if self._resume and self._part.exists() and self._starts_part.exists():
            self._find_whole_documents()
        if not self.documents:
            self._part.write_bytes(self._header().packed().ljust(_HEADER_BYTES, b"\0"))
            self._starts_part.write_bytes(bytes(_START_BYTES))
        os.truncate(self._part, _HEADER_BYTES + self.tokens * self._type.itemsize)
        os.truncate(self._starts_part, (self.documents + 1) * _START_BYTES)
        self._ids: IO[bytes] = self._part.open("ab", buffering=_BUFFER_BYTES)
        self._starts: IO[bytes] = self._starts_part.open("ab")
        return self

    def append(self, ids: Sequence[int] | NDArray[Any]) -> None:
        """Write one document's ids, then the end token.

        Raises:
            UsageError: if an id is outside the vocabulary, or is the end token's, which would end the document early.
        """
        document = np.asarray(ids, dtype=None if len(ids) else np.uint8)
        if document.ndim != 1 or document.dtype.kind not in "ui":
            raise UsageError(
                f"A document must be a one-dimensional array of integers; got {document.dtype} with shape {document.shape}."
            )
        if len(document):
            low, high = int(document.min()), int(document.max())
            if low < 0 or high >= self._vocabulary_size:
                raise UsageError(
                    f"A document's ids must be between 0 and {self._vocabulary_size - 1}; got {low} to {high}."
                )
            if (document == self._end_id).any():
                raise UsageError(f"A document must not contain the end token, {self._end_id}: the writer adds it.")
        packed = np.empty(len(document) + 1, dtype=self._type)
        packed[:-1] = document
        packed[-1] = self._end_id
        self._ids.write(packed.data)
        self.documents += 1
        self.tokens += len(packed)
        self._starts.write(self.tokens.to_bytes(_START_BYTES, "little"))

    def flush(self) -> None:
        """Sync everything appended so far to disk, so that a resuming writer finds it after a power loss."""
        for part in (self._ids, self._starts):
            part.flush()
            os.fsync(part.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        except BaseException as failure:
            kind = type(failure)
            raise
        finally:
            self._leave(keep=self._resume and kind is not None)

    def _finish(self) -> None:
        """Append the starts to the ids, write the header, then move the file into place."""
        self.flush()
        header = self._header()
        checksum = zlib.crc32(header.packed())
        self._ids.write(bytes(header.starts_at - _HEADER_BYTES - self.tokens * self._type.itemsize))
        with self._starts_part.open("rb") as starts:
            while piece := starts.read(_BUFFER_BYTES):
                checksum = zlib.crc32(piece, checksum)
                self._ids.write(piece)
        self._ids.close()
        with self._part.open("r+b") as part:
            part.write(header.packed() + _CHECKSUM.pack(checksum))
            part.flush()
            os.fsync(part.fileno())
        self._part.replace(self._file)

    def _leave(self, *, keep: bool) -> None:
        for part, path in ((self._ids, self._part), (self._starts, self._starts_part)):
            with suppress(OSError):  # a full disk, say, which the `with` already reports
                part.close()
            if not keep:
                path.unlink(missing_ok=True)

    def _header(self) -> _Header:
        width = self._type.itemsize
        return _Header(_VERSION, width, self._vocabulary_size, self._end_id, self.documents, self.tokens)

    def _find_whole_documents(self) -> None:
        """Count the earlier writer's documents whose ids and starts both reached the disk."""
        with self._part.open("rb") as part:
            head = part.read(_HEADER_BYTES)
        if len(head) < _HEADER_BYTES:
            return
        if not self._header().fits(_Header.read(head)):
            raise ReadError(
                f"{self._part} was not begun for a vocabulary of {self._vocabulary_size} with end token "
                f"{self._end_id}. Delete it to start over."
            )
        whole = self._starts_part.stat().st_size // _START_BYTES
        if not whole:
            return
        starts = np.memmap(self._starts_part, dtype="<u8", mode="r", shape=(whole,))
        written = (self._part.stat().st_size - _HEADER_BYTES) // self._type.itemsize
        # A block that never reached the disk reads as zeros, so the starts stop increasing there.
        sound = max(1, int(np.searchsorted(starts, written, side="right")))
        fallen = np.flatnonzero(starts[1:sound] <= starts[: sound - 1])
        self.documents = int(fallen[0]) if len(fallen) else sound - 1
        self.tokens = int(starts[self.documents]) if self.documents else 0


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of `context` + 1 tokens that training reads: inputs are all but the last, targets all but the first.

    Consecutive windows share one token: the last target of one is the first input of the next. Each token is predicted
    once. join: the file is one sequence, cut from its beginning; an incomplete window at its end is dropped. tail: each
    document, with its end token, is cut separately; an incomplete window at its end is dropped.

    Raises:
        UsageError: if the context is below 1, the limit below 0 or the packing unknown.
    """

    tokens: TokenFile
    context: int
    packing: Literal["join", "tail"] = "join"
    limit: int = 0
    """Use only the first N windows; 0: all."""

    def __post_init__(self) -> None:
        if self.context < 1:
            raise UsageError(f"A window's context must be at least 1 token; got {self.context}.")
        if self.limit < 0:
            raise UsageError(f"The limit on windows must not be negative; got {self.limit}.")
        if self.packing not in ("join", "tail"):
            raise UsageError(f'The packing must be "join" or "tail"; got "{self.packing}".')

    def __len__(self) -> int:
        return min(self.whole, self.limit) if self.limit else self.whole

    @property
    def whole(self) -> int:
        """How many windows all tokens give, whatever the limit."""
        if self.packing == "tail":
            return int(self._until[-1]) if len(self._until) else 0
        return max(0, len(self.tokens.tokens) - 1) // self.context

    @property
    def dropped_share(self) -> float:
        """The share of the tokens that could be predicted and that no window has, whatever the limit."""
        ends = self.tokens.documents if self.packing == "tail" else 1
        there = len(self.tokens.tokens) - ends
        return 1 - self.whole * self.context / there if there > 0 else 0.0

    def batch(self, indices: NDArray[Any]) -> NDArray[np.int64]:
        """(len(indices), context + 1): the windows with these numbers; nothing else is read from disk.

        Raises:
            UsageError: if a number is negative or not below the number of windows.
        """
        windows = np.asarray(indices, dtype=np.int64)
        if len(windows) and (windows.min() < 0 or windows.max() >= len(self)):
            raise UsageError(
                f"A window's number must be between 0 and {len(self) - 1}; got {windows.min()} to {windows.max()}."
            )
        at = self._first_tokens(windows)[:, None] + np.arange(self.context + 1)
        batch: NDArray[np.int64] = self._ids[at].astype(np.int64)
        return batch

    def _first_tokens(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The position of each window's first token in the file."""
        if self.packing == "join":
            return windows * self.context
        document = np.searchsorted(self._until, windows, side="right")
        before = np.where(document > 0, self._until[document - 1], 0)
        starts: NDArray[np.int64] = self.tokens.starts[document].astype(np.int64)
        return starts + (windows - before) * self.context

    @cached_property
    def _until(self) -> NDArray[np.int64]:
        """(documents,) The number of windows up to the end of each document; only for tail packing."""
        lengths = np.diff(self.tokens.starts).astype(np.int64)
        until: NDArray[np.int64] = np.cumsum((lengths - 1) // self.context)
        return until

    @cached_property
    def _ids(self) -> NDArray[Any]:
        """The mapped tokens as a plain array, which numpy indexes faster."""
        return np.asarray(self.tokens.tokens)


def order(count: int, *, seed: int, epoch: int) -> NDArray[Any]:
    """(count,): the order of the windows in one epoch, a permutation determined by seed and epoch alone.

    numpy guarantees RandomState's stream for all time and on all platforms, but not Generator's.

    Raises:
        UsageError: if a number is negative.
    """
    for name, number in {"count": count, "seed": seed, "epoch": epoch}.items():
        if number < 0:
            raise UsageError(f"An order's {name} must not be negative; got {number}.")
    indices = np.arange(count, dtype=np.uint32 if count <= 1 << 32 else np.int64)
    np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, epoch]))).shuffle(indices)
    return indices


class _Header(NamedTuple):
    """A token file's header."""

    version: int
    width: int
    """Bytes per token."""
    vocabulary_size: int
    end_id: int
    documents: int
    tokens: int
    checksum: int = 0
    """CRC-32 of the other fields, then of the starts."""

    @staticmethod
    def read(head: bytes) -> _Header:
        return _Header(*_FIELDS.unpack_from(head)[1:], *_CHECKSUM.unpack_from(head, _FIELDS.size))

    @property
    def starts_at(self) -> int:
        """The byte offset of the starts: after the ids, rounded up to a multiple of eight."""
        return -(-(_HEADER_BYTES + self.tokens * self.width) // _START_BYTES) * _START_BYTES

    @property
    def file_bytes(self) -> int:
        return self.starts_at + (self.documents + 1) * _START_BYTES

    def packed(self) -> bytes:
        """All fields except the checksum."""
        return _FIELDS.pack(_MAGIC, *self[:-1])

    def fits(self, other: _Header) -> bool:
        """Whether the other file's tokens have the same meaning."""
        return (self.version, self.vocabulary_size, self.end_id) == (other.version, other.vocabulary_size, other.end_id)


def _unreadable(file: Path, reason: str) -> ReadError:
    return ReadError(f"{file} is not a valid token file of `trainwright lm prepare`: {reason}. Prepare the data again.")
