"""`trainwright lm prepare`: its arguments."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token
from rich.console import Console
from rich.text import Text

from trainwright.errors import UsageError
from trainwright_lm.corpus.filters import OWN, FilterOptions
from trainwright_lm.corpus.licences import PERMISSIVE, spdx
from trainwright_lm.corpus.options import PrepareOptions, words
from trainwright_lm.corpus.spread import ONE_PROCESS, Spread

# Of so many kept files the beginning is shown, and so many letters of each.
EXAMPLES, EXAMPLE_LETTERS = 2, 200


def _licences(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    names = words(_, tokens)
    if names in (("permissive",), ("any",)):
        return PERMISSIVE if names == ("permissive",) else ()
    unknown = [name for name in names if spdx(name) is None and not name.startswith("LicenseRef-")]
    if unknown or not names:
        raise UsageError(
            f"--licenses must be permissive, any, or SPDX identifiers such as MIT,Apache-2.0; got {','.join(names)!r}."
        )
    return tuple(spdx(name) or name for name in names)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Filters:
    """Which files are kept: settings of `FilterOptions`; None: its default for the kind of source."""

    keywords: Annotated[tuple[str, ...] | None, Parameter(converter=words, n_tokens=1, negative=())] = None
    """Keep only files that mention one of these words, separated by commas; "" keeps all. Default: pandas, sklearn,
    matplotlib, seaborn for `installed` and the Hub; no filter for folders and tables."""
    all_files: Annotated[bool, Parameter(name="--all", negative=())] = False
    """Keep files whatever they mention."""
    licences: Annotated[
        tuple[str, ...] | None,
        Parameter(name=("--licences", "--licenses"), converter=_licences, n_tokens=1, negative=()),
    ] = None
    """permissive, any (even unknown), or SPDX identifiers separated by commas. Default: permissive for `installed` and the
    Hub; any for folders and tables."""
    unknown_licences: Annotated[
        Literal["own", "keep", "drop"], Parameter(name=("--unknown-licences", "--unknown-licenses"))
    ] = "own"
    """Files without a known license. own: keep those from folders and tables, which you named yourself, and drop those
    from installed and the Hub."""
    generated: Annotated[bool, Parameter(negative=())] = False
    """Keep files that say in their first five lines that a program wrote them (in folders and tables: that they are
    generated and must not be edited)."""
    min_bytes: int | None = None
    """Drop files shorter than this. Default: 64; no limit for folders and tables."""
    longest_line: int | None = None
    """Drop files with a line longer than this many characters. Default: 1000; no limit for folders and tables."""
    mean_line: float | None = None
    """Drop files whose mean line is longer than this many characters. Default: 100; 1000 for folders and tables."""
    alphanumeric_share: float | None = None
    """Drop files with a smaller fraction of letters and digits than this. Default: 0.25."""

    def given(self) -> dict[str, Any]:
        """What was given, by the names of `FilterOptions`."""
        values = {name: value for name, value in vars(self).items() if value is not None and name != "all_files"}
        return {**values, "keywords": ()} if self.all_files else values


def prepare(
    *sources: str,
    out: Path,
    filters: _Filters = _Filters(),
    options: PrepareOptions = PrepareOptions(),  # noqa: B008
    spread: Annotated[Spread, Parameter(name="*")] = ONE_PROCESS,
    restart: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Gather source code, filter, deduplicate and split it by package or repository, train a tokenizer, and pack tokens.

    From folders and tables, everything is kept except unreadable or generated files, duplicates, and files that are not
    source code. `installed` and the Hub are also filtered by keywords, licenses and the look of the code. A filter that
    you give as an option applies to all sources.

    Completed steps are skipped and an interrupted one is resumed. Exit status: 0 prepared; 2 wrong usage, or nothing to
    prepare from.

    Args:
        sources: `installed` (the Python files of the packages in this environment; the default), a folder (each
            first-level subfolder is a group; a git checkout is a single group), a table (.jsonl, .jsonl.gz, .parquet),
            hub:OWNER/NAME, or any of these at an address of fsspec's (s3://BUCKET/a.parquet, https://HOST/a.tar.gz).
            Several are allowed.
        out: The folder to write the prepared data to.
        restart: Delete the folder's earlier prepared data and start over.

    Examples:

        trainwright lm prepare --out data                   the packages in this environment
        trainwright lm prepare ~/code --out data            all your Python files
        trainwright lm prepare --out data --max-bytes 20MB --max-group-bytes 2MB  a small, varied sample
        trainwright lm prepare a.jsonl.gz b.parquet --out data --keywords torch,numpy
        trainwright lm prepare hub:codeparrot/codeparrot-clean --out data --vocabulary 50000
        trainwright lm prepare ~/code --out data --executor local          on all processors
        trainwright lm prepare hub:codeparrot/codeparrot-clean --out /shared/data --executor slurm --tasks 54
            --sbatch partition=cpu,time=24:00:00
    """
    from trainwright_lm.corpus.prepare import prepare as prepare_data

    given = filters.given()
    options = replace(
        options,
        sources=sources or options.sources,
        filters=replace(FilterOptions(), **given),
        own_filters=replace(OWN, **given),
    )
    try:
        done = prepare_data(out, options, restart=restart, spread=spread)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped. Run the same command again to resume.")
        raise
    if done.manifest is None:
        told = (
            f"Submitted; {out / 'work' / 'logs'} holds the logs. The same command, when the jobs have ended, goes on."
        )
        if spread.dry_run:
            told = "Nothing was submitted or written. The same command without --dry-run submits these jobs."
        Console(file=sys.stdout, highlight=False, soft_wrap=True).print(told)
    else:
        _show(done.manifest, out, done.already)
    return 0


def _examples(out: Path) -> Iterator[Text]:
    """Two kept files: where they come from, their license, and their first lines."""
    from trainwright_lm.tokens.prepared import documents

    for number, one in enumerate(itertools.islice(documents(out, "train"), EXAMPLES), start=1):
        begins = " ⏎ ".join(line.rstrip() for line in one.text.split("\n") if line.strip())[:EXAMPLE_LETTERS]
        licence = one.licence or "license unknown"
        yield Text.assemble(
            (f"kept, file {number}: ", "bold"), f"{one.group}, {one.path}, {licence}: ", (begins, "dim")
        )


def _show(manifest: dict[str, Any], out: Path, already: bool) -> None:
    """Print the summary."""
    from trainwright_lm.corpus.funnel import render, unit_of

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    if already:
        console.print(f"{out} is already prepared; use --restart to prepare it again.")
    console.print(render(manifest["funnel"]))
    console.print()
    unit, size = unit_of(manifest["funnel"]["seen"]["bytes"])
    for name, split in manifest["splits"].items():
        console.print(
            f"[bold]{name:<10}[/] {split['documents']:>9,} files  {split['bytes'] / size:>9,.1f} {unit}  "
            f"{split['tokens']:>13,} tokens  {split['groups']:>7,} groups"
        )
    proof = manifest["proof"]
    console.print(
        f"Every training file was compared with every validation file: {proof['equal_texts']} equal, {proof['near_texts']} "
        f"near (Jaccard {proof['near_threshold']} or more), {proof['shared_groups']} groups shared."
    )
    if manifest["split_by"] == "file":
        console.print(
            "[yellow]No combination of whole groups comes close to --validation, so the split is by file: scores on it will look "
            "better than on new code.[/]"
        )
    for one in _examples(out):
        console.print(one)
    vocabulary = manifest["tokenizer"]
    console.print(
        f"Tokenizer: {vocabulary['vocabulary_size']:,} entries, trained on {vocabulary['trained_on_bytes'] / size:,.1f} {unit}."
    )
    console.print(f"Prepared in {out}. Next: trainwright lm train {out} --out run")
