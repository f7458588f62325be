"""Converts a run to a folder that transformers opens, with a model card, here or on the Hub, and back, without transformers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, UndefinedError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.atomic import read_json, write_json
from trainwright_lm.config import ModelConfig, Recipe, RunConfig, as_tables
from trainwright_lm.corpus.funnel import WHY
from trainwright_lm.corpus.licences import HUB_NAMES
from trainwright_lm.exchange import layout
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import EVALUATION, Run, chosen_keywords, create_run, open_run, read_manifest
from trainwright_lm.tokens.tokenizer import END, Tokenizer, load_tokenizer

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# transformers' pipeline writes 256 tokens by default, more than a small window has.
_NEW_TOKENS = 64
_KINDS = {
    "gpt2": "with the GPT-2 architecture",
    "modern": "with rotary positions, RMSNorm, normalized queries and keys, and SwiGLU",
}


def export_run(run: Path, folder: Path, *, checkpoint: str = "best", force: bool = False) -> None:
    """Write the run's model, tokenizer, configuration and card as a transformers folder.

    The files are written next to the folder, then moved: all at once if the folder is new, otherwise file by file.

    Args:
        force: write into a nonempty folder; files with other names are kept.

    Raises:
        UsageError: if the folder is a file, or is not empty and force is off.
        ReadError: if the run cannot be read.
        WriteError: if the folder cannot be written.
    """
    folder = folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"An export needs a folder; {folder} is a file.")
    try:
        if not force and folder.is_dir() and any(folder.iterdir()):
            raise UsageError(
                f"An export needs a new or empty folder; {folder} is not empty. "
                "Name another one, or replace the files of an earlier export with --force."
            )
        opened = open_run(run, checkpoint)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
            made = Path(beside) / folder.name
            made.mkdir()
            write_files(opened, made, folder.name)
            _move(made, folder)
    except OSError as error:
        raise WriteError(f"{folder} cannot be written to: {error}.") from error


def write_files(run: Run, folder: Path, title: str) -> None:
    """Write the files of an export into an existing folder; the card uses the title as the model's name.

    Raises:
        WriteError: if they cannot be written.
    """
    config, end_id = run.recipe.model, run.tokenizer.end_id
    weights = layout.their_weights(run.model.state_dict(), config)
    try:
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        write_json(folder / "config.json", layout.their_settings(config, end_id))
        write_json(folder / "generation_config.json", _generation(config, end_id))
        run.tokenizer.save(folder / "tokenizer.json")
        write_json(folder / "tokenizer_config.json", _tokenizer_settings(config))
        (folder / "README.md").write_text(written_card(run, title), encoding="utf-8")
    except (OSError, SafetensorError) as error:
        megabytes = sum(tensor.nbytes for tensor in weights.values()) // 1_000_000 + 1
        raise WriteError(f"{folder} needs room for a model of {megabytes} MB: {error}.") from error


def import_folder(folder: Path, run: Path) -> None:
    """Turn a folder that transformers wrote into a run: a supported GPT-2 or Qwen3 with a byte-level BPE tokenizer.

    Raises:
        ReadError: if the folder contains anything else; the message says what is required.
        UsageError: if the run's folder is not empty.
        WriteError: if the run cannot be written.
    """
    settings = _read_json(folder / "config.json")
    config = layout.our_config(settings)
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    _check_vocabulary(settings, config, tokenizer)
    model = Transformer(config)
    model.load_state_dict(layout.our_weights(_read_weights(folder), model.state_dict(), config))
    # Sample prompts belong to training, and the rest of the recipe is unknown.
    recipe = Recipe(model=config, run=RunConfig(prompts=()))
    create_run(run, recipe, tokenizer, {"imported": folder.name}, model.eval())


def _check_vocabulary(settings: Mapping[str, Any], config: ModelConfig, tokenizer: Tokenizer) -> None:
    if tokenizer.vocabulary_size > config.vocabulary_size:
        raise ReadError(
            f"The model must have a row for each of the tokenizer's {tokenizer.vocabulary_size} tokens; "
            f"config.json's vocab_size is {config.vocabulary_size}."
        )
    stops = settings.get("eos_token_id")
    if stops is not None and tokenizer.end_id not in (stops if isinstance(stops, list) else [stops]):
        raise ReadError(
            f'config.json\'s eos_token_id must be that of "{END}", {tokenizer.end_id}; got {stops}. '
            "A model that ends documents with another token cannot be stopped here."
        )


def _generation(config: ModelConfig, end_id: int) -> dict[str, Any]:
    """generation_config.json: greedy, stops at the end token. It names no padding token, least of all the end token:
    a collator that masks padding in the labels would mask every end."""
    return {
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "do_sample": False,
        "max_new_tokens": max(1, min(_NEW_TOKENS, config.context // 2)),
    }


def _tokenizer_settings(config: ModelConfig) -> dict[str, Any]:
    return {
        # This class uses tokenizer.json unchanged; transformers 5's GPT2Tokenizer splits text in its own way.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "model_max_length": config.context,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # a literal end token in source code stays text, as in training
    }


def _move(made: Path, folder: Path) -> None:
    """Move the finished files into place: the whole folder at once if it is new, otherwise file by file."""
    if not folder.exists():
        made.rename(folder)
        return
    for file in sorted(made.iterdir()):
        file.replace(folder / file.name)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of model.safetensors, or of the files that its index names."""
    names = [WEIGHTS]
    if not (folder / WEIGHTS).exists() and (folder / INDEX).exists():
        names = sorted(set(_read_json(folder / INDEX).get("weight_map", {}).values()))
    tensors: dict[str, Tensor] = {}
    for name in names:
        try:
            tensors |= load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise ReadError(f"{folder / name} must be a complete safetensors file: {error}.") from error
    return tensors


def _read_json(file: Path) -> dict[str, Any]:
    return read_json(file, f"{file} must be a JSON file that transformers wrote")


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


def written_card(run: Run, title: str) -> str:
    """The card as Markdown with the Hub's header. It does not contain names of local files and folders."""
    manifest = read_manifest(run.folder)
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    template = environment.from_string(files("trainwright_lm.exchange").joinpath("card.md").read_text("utf-8"))
    try:
        return template.render(
            title=title,
            licence=licence(manifest.get("licences", {})),
            keywords=chosen_keywords(manifest),
            model=run.recipe.model,
            kind=_KINDS[run.recipe.model.architecture],
            parameters=sum(p.numel() for p in run.model.parameters()),
            vocabulary=run.tokenizer.vocabulary_size,
            imported="imported" in manifest,
            sources=_sources(manifest.get("options", {}).get("sources", ())),
            funnel=manifest.get("funnel"),
            why=WHY,
            splits=manifest.get("splits", {}),
            split_by=manifest.get("split_by"),
            licences=manifest.get("licences", {}),
            step=run.step,
            recipe=_toml(run.recipe),
            results=_results(run),
        )
    except UndefinedError as error:
        raise ReadError(f"{run.folder} must hold what `prepare`, `train` and `eval` wrote: {error}.") from error


def licence(licences: Mapping[str, Any]) -> str:
    """The Hub's name for the license that all files share; "other" if there are several or one is unknown."""
    names = [name.lower() for name in licences]
    return names[0] if len(names) == 1 and names[0] in HUB_NAMES else "other"


def _sources(named: Sequence[str]) -> list[str]:
    """Public sources by name; the locations of other files are private."""
    public = {"installed": "installed Python packages"}
    shown = [public.get(one, one if one.startswith("hub:") else "files that are not public by name") for one in named]
    return list(dict.fromkeys(shown))


def _toml(recipe: Recipe) -> str:
    """The recipe in the form `trainwright lm train --recipe` reads. JSON numbers, strings and lists are valid TOML."""
    lines = []
    for section, values in as_tables(recipe).items():
        lines += [
            f"[{section}]",
            *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()),
            "",
        ]
    return "\n".join(lines).strip()


def _results(run: Run) -> dict[str, Any]:
    """The results of `trainwright lm eval` for this checkpoint; empty if it was not evaluated."""
    file = run.folder / EVALUATION
    if not file.exists():
        return {}
    must = f"{file} must be what `trainwright lm eval` wrote; evaluate again, or delete it"
    found = read_json(file, must)
    try:
        return found if found["step"] == run.step and None not in found["loss"].values() else {}
    except (KeyError, AttributeError) as error:
        raise ReadError(f"{must}: {error!r}.") from error
