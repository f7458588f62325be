"""`trainwright lm import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def import_(
    folder: Annotated[Path, Parameter(help="What transformers' save_pretrained wrote: model and tokenizer.")],
    run: Annotated[Path, Parameter(help="The run to make: a new or empty folder.")],
    /,
) -> None:
    """Make a run of a folder that transformers wrote.

    It has to be a GPT-2, or a Qwen3 with as many key and value heads as query heads and tied embeddings, with a
    byte-level BPE tokenizer.json that has the token <|endoftext|>. The run can be evaluated, completed with and
    exported; training does not go on from it.

    Examples:

        trainwright lm import downloaded/gpt2 run
        trainwright lm complete run "import numpy as "
    """
    from trainwright.lm.exchange.export import import_folder

    import_folder(folder, run)
    print(run)
