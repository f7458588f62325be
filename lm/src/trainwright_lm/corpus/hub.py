"""Hub datasets as sources: lists their parquet and JSON-lines files, then streams them.

Nothing is stored. Opening the source pins the revision, so an interrupted run resumes with the same files.
"""

from __future__ import annotations

from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus.remote import Remote
from trainwright_lm.corpus.sources import HUB, TABLES, Fields
from trainwright_lm.corpus.tables import TableSource


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
    root = f"datasets/{repository}@{pinned}"
    shelf = Remote(system=HfFileSystem(), root=root, files=tuple(files), mark=str(pinned))
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
