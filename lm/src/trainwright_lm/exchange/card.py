"""The model card of an export: what the model is, how it was trained, its results, and how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, UndefinedError

from trainwright.errors import ReadError
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.corpus.funnel import WHY
from trainwright_lm.runs.folder import EVALUATION, Run, chosen_keywords, read_manifest

# Licenses that the Hub has a name for, besides "other" (huggingface.co/docs/hub/repositories-licenses).
_HUB_LICENCES = (
    "afl-3.0", "agpl-3.0", "apache-2.0", "artistic-2.0", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear",
    "bsl-1.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-4.0", "cc0-1.0", "epl-1.0", "epl-2.0", "eupl-1.2", "gpl-2.0",
    "gpl-3.0", "isc", "lgpl-2.1", "lgpl-3.0", "mit", "mpl-2.0", "ncsa", "postgresql", "unlicense", "wtfpl", "zlib",
)  # fmt: skip
_KINDS = {
    "gpt2": "with the GPT-2 architecture",
    "modern": "with rotary positions, RMSNorm, normalized queries and keys, and SwiGLU",
}


def written(run: Run, title: str) -> str:
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
    return names[0] if len(names) == 1 and names[0] in _HUB_LICENCES else "other"


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
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found if found["step"] == run.step and None not in found["loss"].values() else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(
            f"{file} must be what `trainwright lm eval` wrote: {error!r}. Evaluate again, or delete it."
        ) from error
