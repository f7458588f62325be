"""`trainwright lm train`: arguments, then the training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from trainwright.lm.config import Recipe, checked, load_recipe, recipe_from


def train(
    data: Annotated[Path, Parameter(help="A folder that `trainwright lm prepare` wrote.")],
    /,
    *,
    out: Annotated[Path, Parameter(name="--out", help="The run's folder; a run that lies there goes on.")],
    preset: Annotated[
        str | None,
        Parameter(
            name="--preset",
            help=(
                "tiny (minutes on two cores; the default), small or gpt2. A run that goes on has its own recipe."
            ),
        ),
    ] = None,
    recipe: Annotated[
        Path | None, Parameter(name="--recipe", help="A TOML file that changes the preset.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            negative=(),
            allow_leading_hyphen=True,
            help=("section.key=value, after the file; may be given several times."),
        ),
    ] = None,
    precision: Annotated[
        str | None,
        Parameter(
            name="--precision",
            help=(
                "fp32 or bf16; auto (the default) takes what is faster here, as measured when the run begins. A run that goes on "
                "keeps its own."
            ),
        ),
    ] = None,
    threads: Annotated[
        int | None,
        Parameter(
            name="--threads",
            help=(
                "Threads on the CPU; by default OMP_NUM_THREADS, or as many as are fastest here, as measured when the run begins. A "
                "run that goes on keeps its own."
            ),
        ),
    ] = None,
    resume: Annotated[
        bool | None,
        Parameter(
            name="--resume",
            negative="--restart",
            help=(
                "--resume: go on, and refuse to begin; --restart: remove the run that lies there and begin anew. "
                "Without either a run goes on if there is one."
            ),
        ),
    ] = None,
) -> int:
    """Train a model from scratch on prepared data, or go on with a run that was stopped.

    Ctrl-C saves; the same command goes on there. So it does after a crash: from the last checkpoint, bit for bit.
    Exit status: 0 trained to the end; 2 wrong usage, or an error that is named; 130 after Ctrl-C and 143 after SIGTERM,
    each with a checkpoint saved.

    Examples:

        trainwright lm train data --out run
        trainwright lm train data --out run --preset small --set run.updates=2000
        trainwright lm train data --out run --precision fp32 --threads 1
        trainwright lm train data --out run --set 'run.sinks=["tensorboard"]'
        torchrun --nproc_per_node 8 -m trainwright lm train data --out run --preset gpt2
    """
    from trainwright.lm.runs.folder import is_run, read_recipe
    from trainwright.lm.tokens.prepared import open_data
    from trainwright.lm.training.live import duration
    from trainwright.lm.training.train import train as train_run

    asked = preset is not None or recipe is not None or bool(settings)
    if is_run(out) and not asked and resume is not False:
        chosen = read_recipe(out)
    else:
        chosen = load_recipe(preset or "tiny", recipe, settings or ())
    chosen = _with(chosen, precision=precision, threads=threads)
    outcome = train_run(open_data(data), out, chosen, resume=resume)
    if os.environ.get("RANK", "0") != "0":  # one of torchrun's processes; the first one speaks
        return 128 + outcome.signal if outcome.signal else 0
    best = (
        ""
        if outcome.best_loss is None
        else (
            f"; lowest validation loss {outcome.best_loss:.4f} nats a token, at update {outcome.best_update}"
        )
    )
    console = Console()
    console.print(
        f"{outcome.updates} of {outcome.of} updates in {duration(outcome.seconds)}{best}.",
        soft_wrap=True,
        highlight=False,
    )
    if not outcome.signal:
        return 0
    console.print("Stopped and saved. The same command goes on from here.", soft_wrap=True, highlight=False)
    return 128 + outcome.signal  # as shells do for a program that a signal ended


def _with(recipe: Recipe, **run: Any) -> Recipe:
    """The recipe with those settings of the run that were given; a run that goes on takes them, too."""
    return checked(
        recipe_from({"run": {name: value for name, value in run.items() if value is not None}}, recipe)
    )
