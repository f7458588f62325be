"""A folder of prepared data: data.json, tokenizer.json, tokens and texts of training and validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as parquet

from trainwright.errors import ReadError
from trainwright_lm.atomic import checksum, read_json, replacing
from trainwright_lm.documents import Document
from trainwright_lm.tokens.pack import TokenFile, open_tokens
from trainwright_lm.tokens.tokenizer import Tokenizer, load_tokenizer

FORMAT = 1
MANIFEST = "data.json"
TOKENIZER = "tokenizer.json"
SPLITS: tuple[Literal["train"], Literal["validation"]] = ("train", "validation")

# Text per row group, which is the amount in memory when texts are written or read.
_GROUP_BYTES = 8 << 20
_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20
_SCHEMA = pa.schema(
    [("text", pa.large_string()), ("path", pa.string()), ("group", pa.string()), ("license", pa.string())]
)


@dataclass(frozen=True, kw_only=True)
class PreparedData:
    """The data that training and evaluation read."""

    folder: Path
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile
    manifest: dict[str, Any]
    """data.json: format, options, funnel, licenses, each split's documents, bytes and tokens, proof, fingerprint."""


def open_data(folder: Path) -> PreparedData:
    """Open a folder of prepared data.

    Raises:
        ReadError: if it does not exist, is unfinished, or its files do not belong together.
    """
    manifest = read_manifest(folder)
    tokenizer = load_tokenizer(folder / TOKENIZER)
    tokens = {split: open_tokens(tokens_file(folder, split)) for split in SPLITS}
    for split, opened in tokens.items():
        counted, size = manifest["splits"][split]["tokens"], tokenizer.vocabulary_size
        if len(opened.tokens) != counted or opened.vocabulary_size != size:
            raise ReadError(
                f"{opened.path} must have the {counted:,} tokens of {folder / MANIFEST} in a vocabulary of {size:,}; it "
                f"has {len(opened.tokens):,} in one of {opened.vocabulary_size:,}. Prepare the data again."
            )
    return PreparedData(
        folder=folder, tokenizer=tokenizer, train=tokens["train"], validation=tokens["validation"], manifest=manifest
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a folder's data.json.

    Raises:
        ReadError: if it is missing, damaged, or of another version.
    """
    file = folder / MANIFEST
    if not file.exists():
        begun = " Preparing it was not finished; run prepare again." if (folder / "work").is_dir() else ""
        raise ReadError(f"{folder} is not a folder made by `trainwright lm prepare`; it has no {MANIFEST}.{begun}")
    manifest = read_json(file)
    if (found := manifest.get("format")) != FORMAT:
        raise ReadError(f"{file} must have format {FORMAT}; it has {found}. Prepare the data again.")
    return manifest


def documents(folder: Path, split: Literal["train", "validation"]) -> Iterator[Document]:
    """The split's documents in packing order, read one row group at a time.

    Raises:
        ReadError: if they cannot be read.
    """
    file = texts_file(folder, split)
    try:
        # pre_buffer would hold all of the file's row groups in memory.
        with parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER_BYTES) as opened:
            for batch in opened.iter_batches(_BATCH_ROWS):
                for text, path, group, licence in zip(*(column.to_pylist() for column in batch.columns)):
                    yield Document(text=text, path=path, group=group, licence=licence)
    except (pa.ArrowInvalid, OSError) as error:
        raise ReadError(f"{file} must be the texts that prepare wrote: {error}") from error


def write_texts(file: Path, chosen: Iterable[Document]) -> None:
    """Write documents as parquet, atomically, holding one row group in memory."""
    with (
        replacing(file) as stream,
        parquet.ParquetWriter(stream, _SCHEMA, compression="zstd", use_dictionary=["group", "license"]) as writer,
    ):
        rows: list[dict[str, Any]] = []
        size = 0
        for one in chosen:
            rows.append({"text": one.text, "path": one.path, "group": one.group, "license": one.licence})
            size += len(one.text)
            if size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
                rows, size = [], 0
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))


def fingerprint(folder: Path) -> str:
    """A hash of the tokenizer and of both splits' tokens: runs with equal fingerprints saw the same data."""
    return checksum(folder / TOKENIZER, *(tokens_file(folder, split) for split in SPLITS))


def texts_file(folder: Path, split: str) -> Path:
    """The path of a split's texts."""
    return folder / f"{split}.parquet"


def tokens_file(folder: Path, split: str) -> Path:
    """The path of a split's tokens."""
    return folder / f"{split}.bin"
