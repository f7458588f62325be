"""Token ids on disk, two bytes each if the vocabulary allows it, and the windows that training reads from them.

A token file contains a header, the ids, zeros up to a multiple of eight bytes, and the start of each document:

    8 bytes magic | version, bytes a token (uint32) | vocabulary size, end id, documents, tokens (uint64)
    | checksum of these and of the starts (uint32) | zeros up to byte 64 | ids (uint16 or uint32) | starts (uint64)

All numbers are little-endian. Each document ends with the end token.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainwright.errors import ReadError
from trainwright_lm.atomic import replacing

_MAGIC = b"TRWTOKEN"
_VERSION = 1
_FIELDS = struct.Struct("<8sIIQQQQ")
_CHECKSUM = struct.Struct("<I")
_HEADER_BYTES = 64
_START_BYTES = 8


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

    def document(self, number: int) -> NDArray[Any]:
        """The ids of one document, without its end token."""
        return self.tokens[int(self.starts[number]) : int(self.starts[number + 1]) - 1]


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
    _, version, width, vocabulary_size, end_id, documents, tokens = _FIELDS.unpack_from(head)
    if version != _VERSION:
        raise _unreadable(file, f"it has format version {version}, but this version reads {_VERSION}")
    wanted = _starts_at(tokens, width) + (documents + 1) * _START_BYTES
    if width not in (2, 4) or size != wanted:
        raise _unreadable(file, f"it has {size:,} bytes, but its header says {wanted:,}")
    mapped = np.memmap(file, dtype=np.uint8, mode="r")
    ids, starts = mapped[_HEADER_BYTES : _HEADER_BYTES + tokens * width], mapped[_starts_at(tokens, width) :]
    if (_checksum(head[: _FIELDS.size], starts.data),) != _CHECKSUM.unpack_from(head, _FIELDS.size):
        raise _unreadable(file, "its checksum does not match its header and index")
    return TokenFile(
        path=file,
        tokens=ids.view(f"<u{width}"),
        starts=starts.view("<u8"),
        vocabulary_size=vocabulary_size,
        end_id=end_id,
    )


def write_tokens(
    file: Path, documents: Iterable[Sequence[int] | NDArray[Any]], vocabulary_size: int, *, end_id: int
) -> int:
    """Write documents as a token file, atomically, as they come; returns the number of tokens, end tokens included.

    Args:
        documents: Ids that a tokenizer gave, without the end token's.
    """
    starts, width = array("Q", [0]), 2 if vocabulary_size <= 1 << 16 else 4
    with replacing(file) as stream:
        stream.write(bytes(_HEADER_BYTES))
        for ids in documents:
            packed = _packed(ids, width, end_id)
            stream.write(packed.data)
            starts.append(starts[-1] + len(packed))
        head = _FIELDS.pack(_MAGIC, _VERSION, width, vocabulary_size, end_id, len(starts) - 1, starts[-1])
        index = np.asarray(starts, dtype="<u8").data
        stream.write(bytes(_starts_at(starts[-1], width) - stream.tell()))
        stream.write(index)
        stream.seek(0)
        stream.write(head + _CHECKSUM.pack(_checksum(head, index)))
    return starts[-1]


def _packed(ids: Sequence[int] | NDArray[Any], width: int, end_id: int) -> NDArray[Any]:
    """A document's ids and the end token, as they are stored."""
    packed = np.empty(len(ids) + 1, dtype=f"<u{width}")
    packed[:-1] = ids
    packed[-1] = end_id
    return packed


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of `context` + 1 tokens that training reads: inputs are all but the last, targets all but the first.

    Consecutive windows share one token: the last target of one is the first input of the next. Each token is predicted
    once. join: the file is one sequence, cut from its beginning; an incomplete window at its end is dropped. tail: each
    document, with its end token, is cut separately; an incomplete window at its end is dropped.
    """

    tokens: TokenFile
    context: int
    packing: Literal["join", "tail"] = "join"
    limit: int = 0
    """Use only the first N windows; 0: all."""

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
        """(len(indices), context + 1): the windows with these numbers; nothing else is read from disk."""
        windows = np.asarray(indices, dtype=np.int64)
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
    """
    indices = np.arange(count, dtype=np.uint32 if count <= 1 << 32 else np.int64)
    np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, epoch]))).shuffle(indices)
    return indices


def _checksum(head: bytes, index: memoryview) -> int:
    """CRC-32 of the header's fields, then of the starts."""
    return zlib.crc32(index, zlib.crc32(head))


def _starts_at(tokens: int, width: int) -> int:
    """The byte offset of the starts: after the ids, rounded up to a multiple of eight."""
    return -(-(_HEADER_BYTES + tokens * width) // _START_BYTES) * _START_BYTES


def _unreadable(file: Path, reason: str) -> ReadError:
    return ReadError(f"{file} is not a valid token file of `trainwright lm prepare`: {reason}. Prepare the data again.")
