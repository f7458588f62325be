"""`trainwright lm eval`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from trainwright.errors import UsageError, WriteError


def evaluate(
    run: Path,
    /,
    *,
    data: Path | None = None,
    samples: int = 400,
    examples: int = 3,
    seed: int = 0,
    checkpoint: str = "best",
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
) -> None:
    """Evaluate a run on its held-out documents: its loss, and line completions compared with two baselines.

    Loss in nats per token, perplexity and bits per byte count every held-out token once. Lines are cut at random places
    in their code, and at the beginning of library calls (after `plt.`, `df.`, `.fit(`). Each line is completed greedily
    and compared with the original: exact match, edit similarity, identifier match. The baselines are an n-gram model
    and the most frequent rest of a line after the same words, both built from the training documents. The model and the
    n-gram model recall what the file says above the line; each is measured without this recall, too.

    The results are saved as RUN/evaluation.json. They are the same every time.

    Args:
        run: The run's folder.
        data: The prepared data, if it has moved since the run was trained.
        samples: Number of lines of each kind to complete; 0: only the loss.
        examples: Number of the completed lines of each kind to show, evenly spaced among them.
        seed: Random seed for choosing the lines and the baselines' training text.
        checkpoint: best, last, or a step's number.
        json: Also write the results to this file; "-" is standard output.

    Examples:

        trainwright lm eval run
        trainwright lm eval run --samples 1000 --json results.json
        trainwright lm eval run --examples 10
        trainwright lm eval run --checkpoint 400 --samples 0
    """
    from trainwright_lm.evaluation.evaluate import as_json, open_data_of, save
    from trainwright_lm.evaluation.evaluate import evaluate as measure
    from trainwright_lm.evaluation.table import as_table
    from trainwright_lm.runs.folder import open_run

    _check_target(json)
    opened = open_run(run, checkpoint)
    result = measure(opened, open_data_of(opened, data), samples=samples, seed=seed, examples=examples)
    file = save(result, run)
    console = Console(stderr=json == "-")
    console.print(as_table(result))
    console.print(f"\nSaved as {file}.", highlight=False, soft_wrap=True)
    if json == "-":
        sys.stdout.write(as_json(result))
    elif json:
        _write(Path(json), as_json(result))


def _check_target(target: str | None) -> None:
    """Reject an output file that cannot be written before spending minutes."""
    if not target or target == "-":
        return
    if not Path(target).absolute().parent.is_dir():
        raise UsageError(f"{target} must be in an existing folder; {Path(target).parent} does not exist.")
    if Path(target).is_dir():
        raise UsageError(f"{target} is a folder; name a file to write the results to.")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WriteError(f"The results could not be written to {file}: {error}.") from error
