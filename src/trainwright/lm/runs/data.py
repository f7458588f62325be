"""The prepared data that a run was trained on, found again."""

from __future__ import annotations

from pathlib import Path

from trainwright.errors import ReadError, UsageError
from trainwright.lm.runs.folder import Run, read_manifest
from trainwright.lm.tokens.prepared import PreparedData, open_data


def open_data_of(run: Run, folder: Path | None = None) -> PreparedData:
    """The prepared data of a run: where it was when the run began, or in a folder that is named.

    Raises:
        ReadError: if it is not there any more, or cannot be read.
        UsageError: if the run does not say where it was.
    """
    if folder is not None:
        return open_data(folder)
    known = read_manifest(run.folder).get("folder")
    if not known:
        raise UsageError(
            f"{run.folder} must say where its data lies; it does not. Name the prepared data with --data."
        )
    if not Path(known).is_dir():
        raise ReadError(
            f"The run's data must lie in {known}, as when it was trained; it does not. Name its new place with --data."
        )
    return open_data(Path(known))


def check_same_data(run: Run, data: PreparedData) -> None:
    """Reject data that the run was not trained on: its held-out documents may be among those it was trained on.

    Raises:
        UsageError: if it is other data.
    """
    trained_on = read_manifest(run.folder).get("fingerprint")
    if trained_on is not None and trained_on != data.manifest.get("fingerprint"):
        raise UsageError(
            f"A run must be evaluated on the data it was trained on ({trained_on}); "
            f"{data.folder} is other data ({data.manifest.get('fingerprint')}). Name the run's own with --data."
        )
    if run.tokenizer.vocabulary_size != data.tokenizer.vocabulary_size or any(
        run.tokenizer.token_bytes(i) != data.tokenizer.token_bytes(i)
        for i in range(data.tokenizer.vocabulary_size)
    ):
        raise UsageError(
            f"Data must have been prepared with the run's tokenizer; that of {data.folder} is another one."
        )
