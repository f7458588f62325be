"""`trainwright lm prepare`: its arguments."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from trainwright.errors import UsageError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def prepare(
    *sources: Annotated[
        str,
        Parameter(
            help=(
                "`installed` (the Python files of the packages in this environment; the default), a folder (each first-level "
                "folder in it is a group, a git checkout is one), a table (.jsonl, .jsonl.gz, .parquet), or hub:OWNER/NAME. "
                "Several may be named."
            )
        ),
    ],
    out: Annotated[Path, Parameter(name="--out", help="The folder to prepare.")],
    keywords: Annotated[
        str | None,
        Parameter(
            name="--keywords",
            help=(
                'Keep files that mention one of these words anywhere, separated by commas; "" keeps all. By default pandas, '
                "sklearn, matplotlib, seaborn for `installed` and the Hub."
            ),
        ),
    ] = None,
    all_files: Annotated[
        bool, Parameter(name="--all", negative=(), help="Keep files whatever they mention.")
    ] = False,
    licences: Annotated[
        str | None,
        Parameter(
            name=("--licences", "--licenses"),
            help=(
                "permissive, any (known or not), or SPDX identifiers separated by commas. By default permissive for `installed` "
                "and the Hub."
            ),
        ),
    ] = None,
    unknown_licences: Annotated[
        Literal["own", "keep", "drop"],
        Parameter(
            name=("--unknown-licences", "--unknown-licenses"),
            help=(
                "Files without a known licence. own: keep them from folders and tables, which you named yourself; drop them "
                "from installed and the Hub."
            ),
        ),
    ] = "own",
    generated: Annotated[
        bool,
        Parameter(
            name="--generated",
            negative=(),
            help=(
                "Keep files that say in their first five lines that a program wrote them (those of folders and tables: that "
                "they are generated and not to be edited)."
            ),
        ),
    ] = False,
    min_bytes: Annotated[
        int | None,
        Parameter(
            name="--min-bytes", help=("Drop shorter files. By default 64; none in folders and tables.")
        ),
    ] = None,
    longest_line: Annotated[
        int | None,
        Parameter(
            name="--longest-line",
            help=("Drop files with a line of more characters. By default 1000; none in folders and tables."),
        ),
    ] = None,
    mean_line: Annotated[
        float | None,
        Parameter(
            name="--mean-line",
            help=(
                "Drop files whose mean line has more characters. By default 100; 1000 in folders and tables."
            ),
        ),
    ] = None,
    alphanumeric_share: Annotated[
        float | None,
        Parameter(
            name="--alphanumeric-share",
            help=("Drop files with a smaller share of letters and digits. By default 0.25."),
        ),
    ] = None,
    near: Annotated[
        float,
        Parameter(
            name="--near",
            help=("Files are near duplicates from this Jaccard index of their five-word shingles on."),
        ),
    ] = 0.7,
    validation: Annotated[
        float, Parameter(name="--validation", help=("The share of bytes to hold out, in whole groups."))
    ] = 0.05,
    seed: Annotated[int, Parameter(name="--seed", help="Of the choice of the groups that are held out.")] = 0,
    vocabulary: Annotated[
        int,
        Parameter(
            name="--vocabulary",
            help=(
                "Entries of the tokenizer. By default 2048 for less than 30 MB of training text, else 8192."
            ),
        ),
    ] = 0,
    tokenizer_bytes: Annotated[
        str,
        Parameter(
            name="--tokenizer-bytes",
            help=("Text to train the tokenizer on, evenly sampled: bytes, or as in 20MB."),
        ),
    ] = "20MB",
    max_bytes: Annotated[
        str,
        Parameter(
            name="--max-bytes",
            help=(
                "Stop when so much text is kept: bytes, or as in 50MB. Files come in an order by hash, so that it is an even "
                "sample; rows of tables come in theirs."
            ),
        ),
    ] = "0",
    max_group_bytes: Annotated[
        str,
        Parameter(
            name="--max-group-bytes",
            help=("Take at most so much text of one package or repository: more variety in the same bytes."),
        ),
    ] = "0",
    largest: Annotated[
        str, Parameter(name="--largest", help="Skip larger files: bytes, or as in 1MB.")
    ] = "1MB",
    suffixes: Annotated[
        str,
        Parameter(
            name="--suffixes",
            help=("What names of files in folders and packages end in, separated by commas."),
        ),
    ] = ".py",
    text_field: Annotated[
        str,
        Parameter(
            name="--text-field", help=("A table's column with the text; by default content, text or code.")
        ),
    ] = "",
    path_field: Annotated[
        str,
        Parameter(name="--path-field", help=("... with the file's path; by default path and some others.")),
    ] = "",
    group_field: Annotated[
        str,
        Parameter(
            name="--group-field",
            help=("... with the repository; by default repo_name, group and some others."),
        ),
    ] = "",
    licence_field: Annotated[
        str,
        Parameter(
            name=("--licence-field", "--license-field"),
            help=("... with the licence; by default license and some others."),
        ),
    ] = "",
    restart: Annotated[
        bool,
        Parameter(name="--restart", negative=(), help=("Delete what was prepared in the folder before.")),
    ] = False,
) -> int:
    """Gather source code, filter and deduplicate it, split it by package or repository, train a tokenizer, pack tokens.

    Of folders and tables everything is kept but what is unreadable, generated, a duplicate or no source; `installed` and
    the Hub are filtered by keywords, licences and looks as well. What you give of these options counts for all sources.
    What is done is skipped; what was stopped goes on. Exit status: 0 prepared; 2 wrong usage, or nothing to prepare from.

    Examples:

        trainwright lm prepare --out data                   this environment's packages
        trainwright lm prepare ~/code --out data            every Python file of yours
        trainwright lm prepare --out data --max-bytes 20MB --max-group-bytes 2MB  a varied trial
        trainwright lm prepare a.jsonl.gz b.parquet --out data --keywords torch,numpy
        trainwright lm prepare hub:codeparrot/codeparrot-clean --out data --vocabulary 50000
    """
    from trainwright.lm.corpus.filters import OWN, FilterOptions
    from trainwright.lm.corpus.options import PrepareOptions
    from trainwright.lm.corpus.prepare import prepare as prepare_data
    from trainwright.lm.corpus.sources import Fields

    given: dict[str, Any] = {
        "keywords": () if all_files else None if keywords is None else _words(keywords),
        "licences": None if licences is None else _licences(licences),
        "unknown_licences": unknown_licences,
        "generated": generated,
        "min_bytes": min_bytes,
        "longest_line": longest_line,
        "mean_line": mean_line,
        "alphanumeric_share": alphanumeric_share,
    }
    given = {name: value for name, value in given.items() if value is not None}
    options = PrepareOptions(
        sources=sources or ("installed",),
        suffixes=_words(suffixes),
        fields=Fields(text=text_field, path=path_field, group=group_field, licence=licence_field),
        largest=_size(largest, "--largest"),
        max_bytes=_size(max_bytes, "--max-bytes"),
        max_group_bytes=_size(max_group_bytes, "--max-group-bytes"),
        filters=replace(FilterOptions(), **given),
        own_filters=replace(OWN, **given),
        near=near,
        validation=validation,
        seed=seed,
        vocabulary_size=vocabulary,
        tokenizer_bytes=_size(tokenizer_bytes, "--tokenizer-bytes"),
    )
    try:
        done = prepare_data(out, options, restart=restart)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped. The same command goes on from here.")
        raise
    _show(done.manifest, out, done.already)
    return 0


def _words(given: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in given.split(",") if word.strip())


def _licences(given: str) -> tuple[str, ...]:
    from trainwright.lm.corpus.licences import PERMISSIVE, spdx

    if given == "permissive":
        return PERMISSIVE
    if given == "any":
        return ()
    names = _words(given)
    unknown = [name for name in names if spdx(name) is None and not name.startswith("LicenseRef-")]
    if unknown or not names:
        raise UsageError(
            f"--licences must be permissive, any, or SPDX identifiers such as MIT,Apache-2.0; got {given!r}."
        )
    return tuple(spdx(name) or name for name in names)


def _size(given: str, option: str) -> int:
    """Bytes of "20MB", "1.5 GB", "1000000"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", given, re.IGNORECASE)
    if not match:
        raise UsageError(f"{option} must be a number of bytes, as in 20MB or 1000000; got {given!r}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _show(manifest: dict[str, Any], out: Path, already: bool) -> None:
    """The summary in numbers."""
    from trainwright.lm.corpus.funnel import render, unit_of

    console = Console(file=sys.stdout, highlight=False)
    if already:
        console.print(f"{out} is prepared already; --restart prepares it anew.", soft_wrap=True)
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
            "[yellow]No whole group comes near to --validation of the bytes, so the split is by file: scores on it will look "
            "better than on new code.[/]",
            soft_wrap=True,
        )
    vocabulary = manifest["tokenizer"]
    console.print(
        f"Tokenizer: {vocabulary['vocabulary_size']:,} entries, trained on {vocabulary['trained_on_bytes'] / size:,.1f} {unit}."
    )
    console.print(f"Prepared in {out}. Next: trainwright lm train {out} --out run", soft_wrap=True)
