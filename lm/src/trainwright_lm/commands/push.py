"""`trainwright lm push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def push(
    run: Annotated[Path, Parameter(help="The run's folder.")],
    repo: Annotated[
        str, Parameter(help="The repository on the Hub: name or owner/name. It is created if it does not exist.")
    ],
    /,
    *,
    private: Annotated[bool, Parameter(negative=(), help="Create it as a private repository.")] = False,
    checkpoint: Annotated[str, Parameter(help='"best", "last" or a step\'s number.')] = "best",
) -> None:
    """Export a run and upload it to the Hub.

    This needs a token with write access, from `hf auth login` or in HF_TOKEN. HF_ENDPOINT selects another Hub.

    Examples:

        trainwright lm push run my-name/tiny-completions --private
    """
    from trainwright_lm.exchange.push import push_run

    print(push_run(run, repo, private=private, checkpoint=checkpoint))
