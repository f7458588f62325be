"""Table sources: JSON lines (also gzipped) and parquet, one file of code per row.

Parquet is read by row group, each in batches; JSON is read line by line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.parquet as parquet

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import licences
from trainwright_lm.corpus.sources import TABLES, Cursor, Fields, Item, Source, StoredFile

# The usual column names, including those of codeparrot's and the Stack's datasets.
TEXTS = ("content", "text", "code")
PATHS = ("path", "max_stars_repo_path", "file_path", "filename")
GROUPS = ("repo_name", "group", "max_stars_repo_name", "repository_name", "repo")
LICENCES = ("license", "licence", "licenses", "max_stars_repo_licenses")

# Rows in memory at once; a row has at most a few megabytes.
_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20
# JSON escapes a byte as at most six ("\u0000"), and a row also has other fields.
_JSON_WIDTH = 6
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


class Shelf:
    """The disks of this machine; `remote.Remote` has files elsewhere."""

    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    """What its streams raise when reading fails."""

    def open(self, name: str) -> BinaryIO:
        """Open a file as a seekable stream; raises ReadError."""
        try:
            return Path(name).open("rb")
        except OSError as error:
            raise ReadError(f"{name} must be a readable file: {error.strerror}") from error

    def failed(self, name: str, error: Exception) -> ReadError:
        """The failure as a ReadError."""
        return ReadError(f"{name} could not be read to its end: {error}. Run the same command again to resume.")


@dataclass(frozen=True, kw_only=True)
class TableReader:
    """Reads the rows of a source's tables, and source files whole."""

    source: str
    largest: int
    fields: Fields
    shelf: Shelf

    def __call__(self, file: StoredFile, first: int) -> Iterator[Item]:
        """The items of a file from a number on."""
        table = file.name.lower().endswith(TABLES)
        read = _parquet_rows if file.name.endswith(".parquet") else _json_rows if table else _whole_file
        try:
            with self.shelf.open(file.name) as stream:
                for row in read(stream, self, file, first):
                    yield self._item(row, file.name)
        except self.shelf.failures as error:
            raise self.shelf.failed(file.name, error) from error

    def _item(self, row: _Row, name: str) -> Item:
        values = row.values
        group = _first(values, self.fields.group, GROUPS)
        path = _first(values, self.fields.path, PATHS)
        # Without a repository name, the file is the only known grouping.
        return Item(
            content=row.text,
            path=_text(f"{group}/{path}" if group and path else path or f"{name}:{row.number + 1}"),
            group=_text(group or Path(name).name),
            licence=_licence(_first(values, self.fields.licence, LICENCES)),
            after=Cursor(item=row.number + 1),
            share=row.share,
            problem=row.problem,
            size=row.size,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    number: int
    share: float
    text: bytes = b""
    values: dict[str, Any]
    problem: str = ""
    size: int = 0


def open_tables(name: str, paths: Sequence[Path], fields: Fields, largest: int) -> Source:
    """Parquet or JSON-lines files.

    Raises:
        ReadError: if one does not exist, cannot be read or is not a table.
        UsageError: if one lacks a named column.
    """
    try:
        about = [(path, path.stat()) for path in paths]
    except OSError as error:
        raise ReadError(f"{error.filename} must be a readable file: {error.strerror}") from error
    mark = "; ".join(f"{path.name}: {status.st_size} bytes, {status.st_mtime_ns}" for path, status in about)
    files = [StoredFile(name=str(path), size=status.st_size) for path, status in about]
    shelf = Shelf()
    for file in map(str, paths):
        with shelf.open(file) as stream:
            if file.lower().endswith(".parquet"):
                _columns(_opened(stream, file), fields, file)
            elif file.lower().endswith(".gz") and stream.read(2) != b"\x1f\x8b":
                raise ReadError(f"{file} must be a gzip file; it does not start like one.")
    reader = TableReader(source=name, largest=largest, fields=fields, shelf=shelf)
    return Source(name=name, own=True, files=files, mark=mark, read=reader)


def _parquet_rows(stream: BinaryIO, tables: TableReader, stored: StoredFile, first: int) -> Iterator[_Row]:
    shown = tables.source if tables.source.endswith(stored.name) else f"{stored.name} in {tables.source}"
    file = _opened(stream, shown)
    columns = _columns(file, tables.fields, shown)
    text = columns[0]
    total, number = max(file.metadata.num_rows, 1), 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        end = number + rows
        if end <= first:
            number = end
            continue
        try:
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                for values in _dictionaries(batch, text):
                    if number >= first:
                        content = values.pop(text)
                        yield _Row(number=number, share=(number + 1) / total, text=content or b"", values=values)
                    number += 1
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and (error.errno or type(error) is not OSError):
                raise  # an error of the disk or network, not of the file
            yield _Row(number=end - 1, share=end / total, values={}, problem="corrupt")
        number = end


def _dictionaries(batch: pa.RecordBatch, text: str) -> Iterator[dict[str, Any]]:
    """The rows, with texts as bytes: invalid UTF-8 affects only its row, not the table."""
    columns = {
        name: column.cast(pa.large_binary()) if name == text and not pa.types.is_null(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns)
    }
    for row in range(batch.num_rows):
        yield {name: column[row].as_py() for name, column in columns.items()}


def _opened(stream: BinaryIO, name: str) -> parquet.ParquetFile:
    try:
        # Read in blocks: a whole column of a row group may take a gigabyte.
        return parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER_BYTES)
    except ConnectionError:  # an OSError of the network
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise ReadError(f"{name} must be a parquet file: {error}") from error


def _columns(file: parquet.ParquetFile, fields: Fields, name: str) -> list[str]:
    """The columns to read, the text first."""
    there = file.schema_arrow.names
    for wanted in (fields.text, fields.path, fields.group, fields.licence):
        if wanted and wanted not in there:
            raise UsageError(f"{name} must have the column {wanted}; it has {', '.join(there)}.")
    text = fields.text or next((column for column in TEXTS if column in there), "")
    if not text:
        raise UsageError(
            f"{name} must have a column {' or '.join(TEXTS)}, or --text-field must name the column with the text; it has {', '.join(there)}."
        )
    others = [fields.path or PATHS, fields.group or GROUPS, fields.licence or LICENCES]
    chosen = [next((c for c in ([o] if isinstance(o, str) else o) if c in there), "") for o in others]
    return list(dict.fromkeys([text, *(c for c in chosen if c)]))


def _json_rows(stream: BinaryIO, tables: TableReader, file: StoredFile, first: int) -> Iterator[_Row]:
    size = max(file.size, 1)
    zipped = file.name.lower().endswith(".gz")
    lines: Any = gzip.GzipFile(fileobj=stream) if zipped else stream
    longest = tables.largest * _JSON_WIDTH + 100_000
    number = 0
    while True:
        share = min(stream.tell() / size, 1.0)
        try:
            line = lines.readline(longest)
            whole = line.endswith(b"\n") or len(line) < longest
            if not whole:
                _skip_line(lines, longest)
        except _DAMAGED:
            yield _Row(number=max(number, first), share=share, values={}, problem="corrupt")
            return
        if not line:
            return
        if number >= first:
            if whole:
                yield _parsed(line, number, share, tables.fields)
            else:
                yield _Row(number=number, share=share, values={}, problem="huge", size=longest)
        number += 1


def _whole_file(stream: BinaryIO, tables: TableReader, file: StoredFile, first: int) -> Iterator[_Row]:
    group, _, path = file.name.partition("/") if "/" in file.name else ("", "", file.name)
    if not first:
        values = {"path": path, "group": group or Path(tables.source).name}
        yield _Row(number=0, share=1.0, text=stream.read(tables.largest + 1), values=values)


def _skip_line(lines: Any, step: int) -> None:
    while (rest := lines.readline(step)) and not rest.endswith(b"\n"):
        pass


def _parsed(line: bytes, number: int, share: float, fields: Fields) -> _Row:
    if not line.strip():
        return _Row(number=number, share=share, values={}, problem="empty", size=len(line))
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return _Row(number=number, share=share, values={}, problem="corrupt", size=len(line))
    text = _first(values, fields.text, TEXTS)
    if not isinstance(text, str):
        return _Row(number=number, share=share, values=values, problem="no-text", size=len(line))
    try:
        return _Row(number=number, share=share, text=text.encode(), values=values)
    except UnicodeEncodeError:  # half of a surrogate pair
        return _Row(number=number, share=share, values=values, problem="not-utf-8", size=len(line))


def _first(values: dict[str, Any], wanted: str, usual: Sequence[str]) -> Any:
    if wanted:
        return values.get(wanted)
    return next((values[name] for name in usual if values.get(name) is not None), None)


def _text(value: Any) -> str:
    """A name that can be encoded as UTF-8; JSON may contain half of a surrogate pair."""
    return str(value).encode(errors="replace").decode()


def _licence(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        known = [name for one in value if (name := licences.spdx(str(one)))]
        return " OR ".join(known) or None
    return licences.spdx(str(value)) or _text(f"LicenseRef-{value}") if value else None
