"""Finds the prepared data that a run was trained on."""

from __future__ import annotations

from pathlib import Path

from trainwright.errors import ReadError, UsageError
from trainwright_lm.runs.folder import Run, read_manifest
from trainwright_lm.tokens.prepared import PreparedData, open_data


def open_data_of(run: Run, folder: Path | None = None) -> PreparedData:
    """The prepared data of a run, from its original location or the given folder.

    Raises:
        ReadError: if it no longer exists or cannot be read.
        UsageError: if the run does not record its location.
    """
    if folder is not None:
        return open_data(folder)
    known = read_manifest(run.folder).get("folder")
    if not known:
        raise UsageError(f"{run.folder} does not say where its data is. Name the prepared data with --data.")
    if not Path(known).is_dir():
        raise ReadError(f"The run's data is no longer in {known}. Name its new location with --data.")
    return open_data(Path(known))


def check_same_data(run: Run, data: PreparedData) -> None:
    """Reject other data than the run's: its held-out documents may be among the run's training documents.

    Raises:
        UsageError: if the data differs.
    """
    trained_on = read_manifest(run.folder).get("fingerprint")
    if trained_on is not None and trained_on != data.manifest.get("fingerprint"):
        raise UsageError(
            f"A run must be evaluated on the data it was trained on ({trained_on}); "
            f"{data.folder} holds other data ({data.manifest.get('fingerprint')}). Name the run's own data with --data."
        )
    if run.tokenizer.vocabulary_size != data.tokenizer.vocabulary_size or any(
        run.tokenizer.token_bytes(i) != data.tokenizer.token_bytes(i) for i in range(data.tokenizer.vocabulary_size)
    ):
        raise UsageError(f"The data must be prepared with the run's tokenizer; {data.folder} uses another one.")
