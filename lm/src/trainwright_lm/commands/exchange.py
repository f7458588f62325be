"""`trainwright lm export`, `trainwright lm import` and `trainwright lm push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    run: Path, folder: Path, /, *, checkpoint: str = "best", force: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Write a run as a folder that transformers opens, with a model card.

    `AutoModelForCausalLM`, `AutoTokenizer` and `pipeline("text-generation")` open it as it is.

    Args:
        run: The run's folder.
        folder: The folder to write to, new or empty.
        checkpoint: "best", "last" or a step's number.
        force: Replace the files of an earlier export; other files in the folder are kept.

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


def import_(folder: Path, run: Path, /) -> None:
    """Turn a folder that transformers wrote into a run.

    The model must be a GPT-2, or a Qwen3 with tied embeddings and as many key and value heads as query heads. Its
    tokenizer.json must be a byte-level BPE with the token <|endoftext|>. You can evaluate, complete with and export the
    run, but not resume its training.

    Args:
        folder: A folder with a model and its tokenizer, written by transformers' save_pretrained.
        run: The folder for the new run, new or empty.

    Examples:

        trainwright lm import downloaded/gpt2 run
        trainwright lm complete run "import numpy as "
    """
    from trainwright_lm.exchange.export import import_folder

    import_folder(folder, run)
    print(run)


def push(
    run: Path,
    repo: str,
    /,
    *,
    private: Annotated[bool, Parameter(negative=())] = False,
    checkpoint: str = "best",
) -> None:
    """Export a run and upload it to the Hub.

    This needs a token with write access, from `hf auth login` or in HF_TOKEN. HF_ENDPOINT selects another Hub.

    Args:
        run: The run's folder.
        repo: The repository on the Hub: name or owner/name. It is created if it does not exist.
        private: Create it as a private repository.
        checkpoint: "best", "last" or a step's number.

    Examples:

        trainwright lm push run my-name/tiny-completions --private
    """
    from trainwright_lm.exchange.export import push_run

    print(push_run(run, repo, private=private, checkpoint=checkpoint))
