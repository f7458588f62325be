"""Hub datasets as sources: lists their parquet and JSON-lines files, then streams them.

Nothing is stored. Opening the source pins the revision, so an interrupted run resumes with the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus.sources import HUB, TABLES, Fields
from trainwright_lm.corpus.tables import TableSource

# Bytes per request: a column of a parquet row group is often larger, and this bounds memory use.
_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True, kw_only=True)
class _Repository:
    """The tables of one revision of a dataset."""

    system: Any
    name: str
    revision: str
    files: tuple[tuple[str, int], ...]

    def names(self) -> Sequence[str]:
        return [file for file, _ in self.files]

    def open(self, name: str) -> BinaryIO:
        path = f"datasets/{self.name}@{self.revision}/{name}"
        try:
            return cast("BinaryIO", self.system.open(path, "rb", block_size=_BLOCK_BYTES))
        except self.failures as error:
            raise self.failed(name, error) from error

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return _failures()

    def failed(self, name: str, error: Exception) -> ReadError:
        return ReadError(f"{_unreachable(f'{self.name}/{name}', error)} Run the same command again to resume.")

    def size(self, name: str) -> int:
        return dict(self.files)[name]

    def state(self) -> str:
        return self.revision

    def part(self, first: int, end: int) -> _Repository:
        return replace(self, files=self.files[first:end])


def open_hub(name: str, fields: Fields, largest: int) -> TableSource:
    """The tables of `hub:OWNER/NAME`, `hub:OWNER/NAME/folder` or `hub:OWNER/NAME@revision`.

    Raises:
        UsageError: if the name does not have this form.
        ReadError: if the Hub or the dataset cannot be reached, or has no tables.
    """
    from huggingface_hub import HfApi, HfFileSystem

    repository, revision, folder = _parsed(name)
    try:
        api = HfApi()
        pinned = api.dataset_info(repository, revision=revision).sha
        entries = list(api.list_repo_tree(repository, recursive=True, revision=pinned, repo_type="dataset"))
    except _failures() as error:
        raise ReadError(_unreachable(repository, error)) from error
    files = sorted(
        (entry.path, entry.size)
        for entry in entries
        if getattr(entry, "size", None) is not None
        and entry.path.lower().endswith(TABLES)
        and entry.path.startswith(folder)
    )
    if not files:
        where = f"{repository}/{folder}" if folder else repository
        raise ReadError(f"The data set {where} has no {', '.join(TABLES)} files.")
    shelf = _Repository(system=HfFileSystem(), name=repository, revision=str(pinned), files=tuple(files))
    return TableSource(name=name, own=False, largest=largest, fields=fields, shelf=shelf)


def _parsed(name: str) -> tuple[str, str | None, str]:
    """The repository, revision and folder of hub:OWNER/NAME@revision/folder."""
    parts = name.removeprefix(HUB).strip("/").split("/")
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"A data set on the Hub must be named {HUB}OWNER/NAME; got {name}.")
    last, _, revision = parts[1].partition("@")
    return f"{parts[0]}/{last}", revision or None, "/".join(parts[2:])


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions that reading from the Hub raises: the base classes of its HTTP library's errors, and OSError."""
    from huggingface_hub.errors import HfHubHTTPError

    return (*HfHubHTTPError.__bases__, OSError, ValueError)


def _unreachable(what: str, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = " ".join([f"{type(error).__name__}:", *lines[:2]])
    return f"The data set {what} could not be reached on the Hub ({reason})."
