"""A run's folder: recipe, tokenizer, data description, log and checkpoints.

RUN/recipe.json, data.json, tokenizer.json, log.jsonl, checkpoints/step-00000200/, evaluation.json
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.atomic import locked, read_json, write_json
from trainwright_lm.config import Recipe, as_tables, check_recipe, recipe_from
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.tokens.tokenizer import Tokenizer, load_tokenizer

RECIPE, DATA, TOKENIZER = "recipe.json", "data.json", "tokenizer.json"
LOG, CHECKPOINTS, EVALUATION = "log.jsonl", "checkpoints", "evaluation.json"
_LOCK = ".lock"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A trained model, ready to use."""

    folder: Path
    recipe: Recipe
    """Includes the vocabulary size."""
    model: Transformer
    """In evaluation mode, fp32, on the CPU."""
    tokenizer: Tokenizer
    step: int
    """Updates after which the checkpoint was saved."""
    precision: str = "fp32"
    """fp32 or bf16: the format of the training's forward and backward passes."""


def open_run(folder: Path, checkpoint: str | int = "best") -> Run:
    """Open a run at one of its checkpoints.

    Args:
        checkpoint: "best" (lowest validation loss; the last one if none was measured), "last", or a step's number.

    Raises:
        ReadError: if the folder is not a run, or the checkpoint is missing or incomplete.
        UsageError: if `checkpoint` has another form.
    """
    recipe = read_recipe(folder)
    tokenizer = load_tokenizer(folder / TOKENIZER)
    step = find_step(folder, checkpoint)
    held = checkpoints.load(checkpoints.step_folder(folder / CHECKPOINTS, step))
    model = Transformer(recipe.model)
    checkpoints.fill(model, held)
    return Run(
        folder=folder, recipe=recipe, model=model.eval(), tokenizer=tokenizer, step=step, precision=held.state.precision
    )


def create_run(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer, manifest: Mapping[str, Any], model: Transformer, step: int = 0
) -> None:
    """Make a run of an imported model; it can be used and exported, but not resumed.

    Raises:
        UsageError: if the folder is not empty.
        WriteError: if it cannot be written.
    """
    begin_run(folder, recipe, tokenizer, manifest)
    state = checkpoints.State(update=step, recipe=as_tables(recipe), data=str(manifest.get("fingerprint", "")))
    checkpoints.save(folder / CHECKPOINTS, state, model.state_dict(), {})


def begin_run(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer, manifest: Mapping[str, Any], *, anew: bool = False
) -> None:
    """Write a run's initial files, the recipe last, because it marks the folder as a run.

    Args:
        anew: first remove the existing run, but no other files.

    Raises:
        UsageError: if the folder is not empty.
        WriteError: if it cannot be written.
    """
    if anew:
        clear_run(folder)
    else:
        check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(folder / TOKENIZER)
        write_json(folder / DATA, manifest)
        write_json(folder / RECIPE, as_tables(recipe))
    except OSError as error:
        raise WriteError(f"The run could not be created in {folder}: {error}.") from error


def clear_run(folder: Path) -> None:
    """Remove a run and nothing else in its folder; the recipe goes last, so the folder counts as a run until then.

    Raises:
        WriteError: if something cannot be removed.
    """
    try:
        for name in (CHECKPOINTS, "tensorboard"):
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
        for name in (LOG, EVALUATION, TOKENIZER, DATA, RECIPE):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(f"The run in {folder} could not be removed: {error}.") from error


def is_run(folder: Path) -> bool:
    """Whether a run was begun in the folder."""
    return (folder / RECIPE).is_file()


def check_free(folder: Path) -> None:
    """Reject a folder in which a run cannot begin.

    Raises:
        UsageError: if it is a file, or contains files other than the leftovers of an interrupted start.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"A run needs a folder; {folder} is a file. Choose another --out.")
    begun = {f"{name}.part" for name in (DATA, RECIPE, TOKENIZER)}  # from a process that was killed
    ours = {_LOCK, DATA, TOKENIZER, *begun}
    held = sorted(p.name for p in folder.iterdir() if p.name not in ours) if folder.is_dir() else []
    if held:
        raise UsageError(
            f"A run needs a new or empty folder; {folder} contains {held[0]}"
            f"{' and more' if len(held) > 1 else ''}. Choose another --out."
        )


def find_step(folder: Path, checkpoint: str | int) -> int:
    """The step number for "best", "last" or a number.

    Raises:
        ReadError: if there is no such checkpoint.
        UsageError: if `checkpoint` has another form.
    """
    there = checkpoints.steps(folder / CHECKPOINTS)
    if not there:
        raise ReadError(f"{folder} has no checkpoint. Train first: trainwright lm train.")
    if checkpoint == "last":
        return there[-1]
    if checkpoint == "best":
        states = [checkpoints.read_state(checkpoints.step_folder(folder / CHECKPOINTS, s)) for s in there]
        measured = [(s.validation_loss, s.update) for s in states if s.validation_loss is not None]
        return min(measured)[1] if measured else there[-1]
    if not str(checkpoint).isdecimal():
        raise UsageError(f'A checkpoint must be "best", "last" or a step number; got "{checkpoint}".')
    if int(checkpoint) not in there:
        raise ReadError(f"{folder} has no checkpoint {checkpoint}; it has {', '.join(map(str, there))}.")
    return int(checkpoint)


def read_recipe(folder: Path) -> Recipe:
    """The recipe a run was begun with.

    Raises:
        ReadError: if the folder is not a run, or its recipe is not of this version.
    """
    if not folder.is_dir():
        raise ReadError(f"A run must be a folder; {folder} is {'a file' if folder.exists() else 'missing'}.")
    try:
        return check_recipe(recipe_from(_read(folder / RECIPE)))
    except UsageError as error:
        raise ReadError(f"{folder / RECIPE} must be a recipe of this version: {error}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """The description of the data that a run was trained on.

    Raises:
        ReadError: if it cannot be read.
    """
    return _read(folder / DATA)


def chosen_keywords(manifest: Mapping[str, Any]) -> list[str]:
    """The keywords that selected the data's files; empty if no source was filtered by keywords."""
    options = manifest.get("options", {})
    found = [options.get(name, {}).get("keywords", ()) for name in ("filters", "own_filters")]
    return list(dict.fromkeys(word for words in found for word in words))


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock the folder so that no second process trains in it; the lock ends with the process.

    Raises:
        UsageError: if another process holds it.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder / _LOCK))
        except BlockingIOError as error:
            raise UsageError(
                f"Another process is training in {folder}. Wait for it to finish, or choose another --out."
            ) from error
        except OSError as error:
            raise UsageError(f"--out must be a folder that can be written to: {error}.") from error
        yield


def _read(file: Path) -> dict[str, Any]:
    return read_json(file, f"{file.parent} must be a run's folder")
