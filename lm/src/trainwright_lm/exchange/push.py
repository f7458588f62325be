"""Uploads an export to the Hub. Only this module needs huggingface_hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

from trainwright.errors import UsageError, WriteError
from trainwright_lm.exchange.export import write_files
from trainwright_lm.runs.folder import open_run


def push_run(run: Path, repo: str, *, private: bool = False, checkpoint: str = "best") -> str:
    """Export the run, upload it to the Hub as one commit, and return the repository's address.

    Args:
        repo: the repository's name, or owner/name; created if it does not exist.

    Raises:
        UsageError: if there is no token, or the name is invalid.
        ReadError: if the run cannot be read.
        WriteError: if the Hub cannot be reached or refuses.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if get_token() is None:
        raise UsageError("A push needs a token with write access; there is none. Run `hf auth login`, or set HF_TOKEN.")
    hub = HfApi(library_name="trainwright")
    # The base class of connection errors, whichever HTTP client this version of the Hub's library uses.
    unreachable = HfHubHTTPError.__mro__[1]
    opened = open_run(run, checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        write_files(opened, Path(folder), repo)
        try:
            made = hub.create_repo(repo, private=private, exist_ok=True)
            hub.upload_folder(
                repo_id=made.repo_id, folder_path=folder, commit_message=f"Update {opened.step} of a Trainwright run"
            )
        except HFValidationError as error:
            raise UsageError(f'A repository must be given as name or owner/name; got "{repo}". {error}') from error
        except (HfHubHTTPError, unreachable, OSError, RuntimeError) as error:
            raise WriteError(f"{hub.endpoint} did not accept {repo}: {_reason(error)}") from error
    return str(made)


def _reason(error: BaseException) -> str:
    """The first line of the root cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{error}".strip().splitlines()[0] if f"{error}".strip() else type(error).__name__
