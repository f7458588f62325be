"""`trainwright lm train`: arguments, then the training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from trainwright_lm.config import check_recipe, load_recipe, recipe_from

if TYPE_CHECKING:
    from trainwright_lm.training.train import TrainingOutcome


def train(
    data: Path,
    /,
    *,
    out: Path,
    preset: str | None = None,
    recipe: Path | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set", negative=(), allow_leading_hyphen=True)] = None,
    precision: str | None = None,
    threads: int | None = None,
    resume: Annotated[bool | None, Parameter(negative="--restart")] = None,
) -> int:
    """Train a model from scratch on prepared data, or resume a run that was stopped.

    Ctrl-C saves a checkpoint, and the same command resumes. After a crash it resumes from the last checkpoint, bit for bit.

    Exit status: 0 trained to the end; 2 wrong usage, or an error with a message; 130 after Ctrl-C and 143 after SIGTERM,
    in both cases with a checkpoint saved (torchrun itself then ends with 1).

    Args:
        data: A folder that `trainwright lm prepare` wrote.
        out: The run's folder; an existing run there is resumed.
        preset: tiny (minutes on two cores; the default), small or gpt2. A resumed run keeps its own recipe.
        recipe: A TOML file with changes to the preset.
        settings: section.key=value; overrides the file; repeatable.
        precision: fp32 or bf16; auto (the default) uses whichever is measured to be faster when the run begins. A
            resumed run keeps its own.
        threads: CPU threads; by default OMP_NUM_THREADS, or the fastest number, as measured when the run begins. A
            resumed run keeps its own.
        resume: --resume: require an existing run to resume; --restart: remove the existing run and start over. By
            default, an existing run is resumed.

    Examples:

        trainwright lm train data --out run
        trainwright lm train data --out run --preset small --set run.updates=2000
        trainwright lm train data --out run --precision fp32 --threads 1
        trainwright lm train data --out run --set 'run.sinks=["tensorboard"]'
        torchrun --nproc_per_node 8 -m trainwright lm train data --out run --preset gpt2
    """
    from trainwright_lm.runs.folder import is_run, read_recipe
    from trainwright_lm.tokens.prepared import open_data
    from trainwright_lm.training.train import train as train_run

    asked = preset is not None or recipe is not None or bool(settings)
    if is_run(out) and not asked and resume is not False:
        chosen = read_recipe(out)
    else:
        chosen = load_recipe(preset or "tiny", recipe, settings or ())
    run = {"precision": precision, "threads": threads}  # also of a resumed run
    chosen = check_recipe(
        recipe_from({"run": {name: value for name, value in run.items() if value is not None}}, chosen)
    )
    return _ended(train_run(open_data(data), out, chosen, resume=resume))


def _ended(outcome: TrainingOutcome) -> int:
    """Say how the training ended, and return the exit status."""
    from trainwright_lm.training.live import duration

    if os.environ.get("RANK", "0") == "0":  # of torchrun's processes, the first one speaks
        best = ""
        if outcome.best_loss is not None:
            best = f"; lowest validation loss {outcome.best_loss:.4f} nats per token, at update {outcome.best_update}"
        done = f"{outcome.updates} of {outcome.of} updates in {duration(outcome.seconds)}{best}."
        console = Console(soft_wrap=True, highlight=False)
        console.print(done)
        if outcome.signal:
            console.print("Stopped and saved. Run the same command again to resume.")
    return 128 + outcome.signal if outcome.signal else 0  # as shells do for a program that a signal ended
