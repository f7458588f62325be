"""`trainwright lm export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    run: Annotated[Path, Parameter(help="The run's folder.")],
    folder: Annotated[Path, Parameter(help="The folder to write to, new or empty.")],
    /,
    *,
    checkpoint: Annotated[str, Parameter(help='"best", "last" or a step\'s number.')] = "best",
    force: Annotated[
        bool, Parameter(negative=(), help="Replace the files of an earlier export; other files in the folder are kept.")
    ] = False,
) -> None:
    """Write a run as a folder that transformers opens, with a model card.

    `AutoModelForCausalLM`, `AutoTokenizer` and `pipeline("text-generation")` open it as it is.

    Examples:

        trainwright lm export run model
        trainwright lm export run model --checkpoint last --force
    """
    from trainwright_lm.corpus.funnel import unit_of
    from trainwright_lm.exchange.export import export_run

    export_run(run, folder, checkpoint=checkpoint, force=force)
    for file in sorted(folder.iterdir()):
        unit, size = unit_of(file.stat().st_size)
        print(f"{file.stat().st_size / size:10.2f} {unit}  {file}")
