"""`trainwright lm import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def import_(
    folder: Annotated[
        Path, Parameter(help="A folder with a model and its tokenizer, written by transformers' save_pretrained.")
    ],
    run: Annotated[Path, Parameter(help="The folder for the new run, new or empty.")],
    /,
) -> None:
    """Turn a folder that transformers wrote into a run.

    The model must be a GPT-2, or a Qwen3 with tied embeddings and as many key and value heads as query heads. Its
    tokenizer.json must be a byte-level BPE with the token <|endoftext|>. You can evaluate, complete with and export the
    run, but not resume its training.

    Examples:

        trainwright lm import downloaded/gpt2 run
        trainwright lm complete run "import numpy as "
    """
    from trainwright_lm.exchange.export import import_folder

    import_folder(folder, run)
    print(run)
