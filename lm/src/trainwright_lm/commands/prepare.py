"""`trainwright lm prepare`: its arguments."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from trainwright.errors import UsageError
from trainwright_lm.corpus.spread import ONE_PROCESS, Spread

if TYPE_CHECKING:
    from trainwright_lm.corpus.options import PrepareOptions

# Of so many kept files the beginning is shown, and so many letters of each.
EXAMPLES, EXAMPLE_LETTERS = 2, 200
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Filters:
    """Which files are kept."""

    keywords: Annotated[
        str | None,
        Parameter(
            help=(
                'Keep only files that mention one of these words, separated by commas; "" keeps all. Default: pandas, '
                "sklearn, matplotlib, seaborn for `installed` and the Hub; no filter for folders and tables."
            ),
        ),
    ] = None
    all_files: Annotated[bool, Parameter(name="--all", negative=(), help="Keep files whatever they mention.")] = False
    licences: Annotated[
        str | None,
        Parameter(
            name=("--licences", "--licenses"),
            help=(
                "permissive, any (even unknown), or SPDX identifiers separated by commas. Default: permissive for `installed` "
                "and the Hub; any for folders and tables."
            ),
        ),
    ] = None
    unknown_licences: Annotated[
        Literal["own", "keep", "drop"],
        Parameter(
            name=("--unknown-licences", "--unknown-licenses"),
            help=(
                "Files without a known license. own: keep those from folders and tables, which you named yourself, and drop those "
                "from installed and the Hub."
            ),
        ),
    ] = "own"
    generated: Annotated[
        bool,
        Parameter(
            negative=(),
            help=(
                "Keep files that say in their first five lines that a program wrote them (in folders and tables: that "
                "they are generated and must not be edited)."
            ),
        ),
    ] = False
    min_bytes: Annotated[
        int | None,
        Parameter(help=("Drop files shorter than this. Default: 64; no limit for folders and tables.")),
    ] = None
    longest_line: Annotated[
        int | None,
        Parameter(
            help=(
                "Drop files with a line longer than this many characters. Default: 1000; no limit for folders and tables."
            ),
        ),
    ] = None
    mean_line: Annotated[
        float | None,
        Parameter(
            help=(
                "Drop files whose mean line is longer than this many characters. Default: 100; 1000 for folders and tables."
            ),
        ),
    ] = None
    alphanumeric_share: Annotated[
        float | None,
        Parameter(
            help=("Drop files with a smaller fraction of letters and digits than this. Default: 0.25."),
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Division:
    """What is made of the kept files: near duplicates, the split and the tokenizer."""

    near: Annotated[
        float,
        Parameter(help=("Jaccard index of five-word shingles from which two files count as near duplicates.")),
    ] = 0.7
    validation: Annotated[float, Parameter(help=("Fraction of bytes to hold out, in whole groups."))] = 0.05
    seed: Annotated[int, Parameter(help="Random seed for choosing the held-out groups.")] = 0
    vocabulary: Annotated[
        int,
        Parameter(
            help=("Number of tokenizer entries. Default: 2048 for less than 30 MB of training text, otherwise 8192."),
        ),
    ] = 0
    tokenizer_bytes: Annotated[
        str,
        Parameter(
            help=("Amount of evenly sampled text to train the tokenizer on, in bytes or as in 20MB."),
        ),
    ] = "20MB"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How much is read, and where a table keeps what."""

    max_bytes: Annotated[
        str,
        Parameter(
            help=(
                "Stop after keeping this much text, in bytes or as in 50MB. Files are read in hash order, which makes this an even "
                "sample; table rows are read in their own order."
            ),
        ),
    ] = "0"
    max_group_bytes: Annotated[
        str,
        Parameter(
            help=(
                "Take at most this much text from one package or repository, for more variety in the same number of bytes."
            ),
        ),
    ] = "0"
    largest: Annotated[str, Parameter(help="Skip files larger than this, in bytes or as in 1MB.")] = "1MB"
    suffixes: Annotated[
        str,
        Parameter(help=("File name endings to read from folders and packages, separated by commas.")),
    ] = ".py"
    text_field: Annotated[str, Parameter(help=("The table column with the text. Default: content, text or code."))] = ""
    path_field: Annotated[
        str,
        Parameter(help=("The table column with the file's path. Default: path and some others.")),
    ] = ""
    group_field: Annotated[
        str,
        Parameter(
            help=("The table column with the repository. Default: repo_name, group and some others."),
        ),
    ] = ""
    licence_field: Annotated[
        str,
        Parameter(
            name=("--licence-field", "--license-field"),
            help=("The table column with the license. Default: license and some others."),
        ),
    ] = ""


def prepare(
    *sources: Annotated[
        str,
        Parameter(
            help=(
                "`installed` (the Python files of the packages in this environment; the default), a folder (each first-level "
                "subfolder is a group; a git checkout is a single group), a table (.jsonl, .jsonl.gz, .parquet), hub:OWNER/NAME, or "
                "any of these at an address of fsspec's (s3://BUCKET/a.parquet, https://HOST/a.tar.gz). Several are allowed."
            )
        ),
    ],
    out: Annotated[Path, Parameter(name="--out", help="The folder to write the prepared data to.")],
    filters: _Filters = _Filters(),
    division: _Division = _Division(),
    reading: _Reading = _Reading(),
    spread: Annotated[Spread, Parameter(name="*")] = ONE_PROCESS,
    restart: Annotated[
        bool,
        Parameter(name="--restart", negative=(), help=("Delete the folder's earlier prepared data and start over.")),
    ] = False,
) -> int:
    """Gather source code, filter, deduplicate and split it by package or repository, train a tokenizer, and pack tokens.

    From folders and tables, everything is kept except unreadable or generated files, duplicates, and files that are not
    source code. `installed` and the Hub are also filtered by keywords, licenses and the look of the code. A filter that
    you give as an option applies to all sources.

    Completed steps are skipped and an interrupted one is resumed. Exit status: 0 prepared; 2 wrong usage, or nothing to
    prepare from.

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

    options = _options(sources or ("installed",), filters, division, reading)
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
        Console(file=sys.stdout, highlight=False).print(told, soft_wrap=True)
    else:
        _show(done.manifest, out, done.already)
    return 0


def _options(sources: tuple[str, ...], filters: _Filters, division: _Division, reading: _Reading) -> PrepareOptions:
    """What the command line says.

    Raises:
        UsageError: for a license or a size that cannot be read.
    """
    from trainwright_lm.corpus.filters import OWN, FilterOptions
    from trainwright_lm.corpus.options import PrepareOptions
    from trainwright_lm.corpus.sources import Fields

    given = {name: value for name, value in _given(filters).items() if value is not None}
    return PrepareOptions(
        sources=sources,
        suffixes=_words(reading.suffixes),
        fields=Fields(
            text=reading.text_field,
            path=reading.path_field,
            group=reading.group_field,
            licence=reading.licence_field,
        ),
        largest=_size(reading.largest, "--largest"),
        max_bytes=_size(reading.max_bytes, "--max-bytes"),
        max_group_bytes=_size(reading.max_group_bytes, "--max-group-bytes"),
        filters=replace(FilterOptions(), **given),
        own_filters=replace(OWN, **given),
        near=division.near,
        validation=division.validation,
        seed=division.seed,
        vocabulary_size=division.vocabulary,
        tokenizer_bytes=_size(division.tokenizer_bytes, "--tokenizer-bytes"),
    )


def _given(filters: _Filters) -> dict[str, Any]:
    """The settings of filters by the names of `FilterOptions`; None: not given."""
    words = None if filters.keywords is None else _words(filters.keywords)
    return {
        "keywords": () if filters.all_files else words,
        "licences": None if filters.licences is None else _licences(filters.licences),
        "unknown_licences": filters.unknown_licences,
        "generated": filters.generated,
        "min_bytes": filters.min_bytes,
        "longest_line": filters.longest_line,
        "mean_line": filters.mean_line,
        "alphanumeric_share": filters.alphanumeric_share,
    }


def _words(given: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in given.split(",") if word.strip())


def _licences(given: str) -> tuple[str, ...]:
    from trainwright_lm.corpus.licences import PERMISSIVE, spdx

    if given == "permissive":
        return PERMISSIVE
    if given == "any":
        return ()
    names = _words(given)
    unknown = [name for name in names if spdx(name) is None and not name.startswith("LicenseRef-")]
    if unknown or not names:
        raise UsageError(
            f"--licenses must be permissive, any, or SPDX identifiers such as MIT,Apache-2.0; got {given!r}."
        )
    return tuple(spdx(name) or name for name in names)


def _size(given: str, option: str) -> int:
    """The number of bytes in "20MB", "1.5 GB" or "1000000"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", given, re.IGNORECASE)
    if not match:
        raise UsageError(f"{option} must be a number of bytes, as in 20MB or 1000000; got {given!r}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


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

    console = Console(file=sys.stdout, highlight=False)
    if already:
        console.print(f"{out} is already prepared; use --restart to prepare it again.", soft_wrap=True)
    console.print(render(manifest["funnel"]), soft_wrap=True)
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
        f"near (Jaccard {proof['near_threshold']} or more), {proof['shared_groups']} groups shared.",
        soft_wrap=True,
    )
    if manifest["split_by"] == "file":
        console.print(
            "[yellow]No combination of whole groups comes close to --validation, so the split is by file: scores on it will look "
            "better than on new code.[/]",
            soft_wrap=True,
        )
    for one in _examples(out):
        console.print(one, soft_wrap=True)
    vocabulary = manifest["tokenizer"]
    console.print(
        f"Tokenizer: {vocabulary['vocabulary_size']:,} entries, trained on {vocabulary['trained_on_bytes'] / size:,.1f} {unit}."
    )
    console.print(f"Prepared in {out}. Next: trainwright lm train {out} --out run", soft_wrap=True)
