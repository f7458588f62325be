"""Turns sources into a folder of prepared data, in stages; a killed run resumes at the interrupted stage.

Until data.json exists, OUT/work holds the intermediate results. Every stage depends only on its input, so a run that
was killed and resumed produces the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwright.errors import UsageError
from trainwright_lm.atomic import locked, read_json, write_json
from trainwright_lm.corpus import files, steps
from trainwright_lm.corpus.filters import check_options
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.remote import open_hub, open_remote
from trainwright_lm.corpus.sources import ARCHIVES, HUB, INSTALLED, TABLES, Source, is_own
from trainwright_lm.corpus.spread import ONE_PROCESS, Spread, run
from trainwright_lm.corpus.tables import open_tables
from trainwright_lm.tokens.pack import open_tokens
from trainwright_lm.tokens.prepared import FORMAT, MANIFEST, SPLITS, TOKENIZER, fingerprint, read_manifest, tokens_file


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The result of `prepare`."""

    manifest: dict[str, Any] | None
    """None: the work was submitted to Slurm, or was to be."""
    already: bool = False
    """Everything was already prepared."""


def prepare(out: Path, options: PrepareOptions, *, restart: bool = False, spread: Spread = ONE_PROCESS) -> Prepared:
    """Prepare data in a folder; work that an earlier call with the same options finished is not repeated.

    Args:
        restart: Delete existing work, whatever its options.
        spread: Where the work is done; the result is the same.

    Raises:
        UsageError: if options conflict with each other or with the folder's contents, or the folder cannot be written.
        ReadError: if a source cannot be read.
    """
    _check(options)
    spread.check(options)
    if re.match(r"[\w+.-]{2,}:/", out.as_posix()):
        raise UsageError(
            f"--out must be a folder on a file system; got an address, {out.as_posix().replace(':/', '://', 1)}. Prepare in a "
            "folder, and copy what is there then."
        )
    if restart and spread.dry_run:
        raise UsageError("--dry-run must not delete anything: leave out --restart.")
    fresh = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out):
            return _prepare(out, options, restart, spread)
    except BlockingIOError as error:
        raise UsageError(f"{out} is being prepared by another process; wait for it, or name another --out.") from error
    except OSError as error:
        raise UsageError(
            f"{out} must be a folder with room to write: {error}. Nothing done so far is lost; run prepare again to resume."
        ) from error
    finally:
        if fresh and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _prepare(out: Path, options: PrepareOptions, restart: bool, spread: Spread) -> Prepared:
    job, wanted = steps.Job(out=out.absolute(), options=options), _plain(options)
    begun = (out / MANIFEST).exists() or (job.work / _STATE).exists()
    # Before anything is created or deleted, because a name may be wrong.
    sources = open_sources(options) if restart or not begun else []
    if restart:
        _delete(job)
    if (out / MANIFEST).exists():
        manifest = read_manifest(out)
        _compare(manifest["options"], wanted, out)
        shutil.rmtree(job.work, ignore_errors=True)
        return Prepared(manifest=manifest, already=True)
    _begin(job, wanted, spread)
    if not spread.dry_run and not steps.are_gathered(job, spread.shards):
        steps.cut(job, _unchanged(job.work, sources or open_sources(options)), spread.shards)
    run(job, spread, finish)
    if spread.executor == "slurm":
        return Prepared(manifest=None)
    shutil.rmtree(job.work, ignore_errors=True)
    return Prepared(manifest=read_manifest(out))


def finish(job: steps.Job, rank: int = 0, tasks: int = 1) -> None:
    """The last task: put the tokens together and write data.json."""
    steps.join_tokens(job)
    write_json(job.out / MANIFEST, _manifest(job, _plain(job.options)))


def _manifest(job: steps.Job, options: dict[str, Any]) -> dict[str, Any]:
    """data.json; its contents do not depend on when or how often prepare was called."""
    found = read_json(job.outcome)
    opened = {name: open_tokens(tokens_file(job.out, name)) for name in SPLITS}
    return {
        "format": FORMAT,
        "options": options,
        "sources": read_json(job.work / _STATE)["fingerprints"],
        "funnel": found["funnel"],
        "splits": {name: {**found["splits"][name], "tokens": len(opened[name].tokens)} for name in SPLITS},
        "split_by": found["split_by"],
        "licences": found["licences"],
        "proof": found["proof"],
        "tokenizer": {
            "vocabulary_size": opened["train"].vocabulary_size,
            "trained_on_bytes": min(options["tokenizer_bytes"], found["splits"]["train"]["bytes"]),
        },
        "fingerprint": fingerprint(job.out),
    }


_STATE = "state.json"
_OURS = (MANIFEST, TOKENIZER, *(f"{name}.{kind}" for name in SPLITS for kind in ("parquet", "bin")))


def _begin(job: steps.Job, wanted: dict[str, Any], spread: Spread) -> None:
    """Check that OUT is free, or contains work with the same options and tasks."""
    if (job.work / _STATE).exists():
        state = read_json(job.work / _STATE)
        _compare(state["options"], wanted, job.out)
        if (had := state["tasks"]) != spread.shards:
            raise UsageError(
                f"{job.out} was begun {f'with --tasks {had}' if had > 1 else 'without --executor'}; go on so, or let "
                "--restart start over."
            )
        return
    foreign = [name for name in _OURS if (job.out / name).exists()]
    if foreign:
        raise UsageError(
            f"{job.out} must not contain files that prepare would overwrite; it has {', '.join(foreign)}. "
            "Name another --out, or let --restart delete them."
        )
    if not spread.dry_run:
        shutil.rmtree(job.work, ignore_errors=True)
        job.work.mkdir()
        write_json(job.work / _STATE, {"options": wanted, "fingerprints": {}, "tasks": spread.shards})


def open_sources(options: PrepareOptions) -> list[Source]:
    """Open the sources that the options name.

    Raises:
        UsageError: if a name is repeated or is not a folder, a table or a known word.
        ReadError: if a source cannot be read.
    """
    names = options.sources
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise UsageError(f"Each source must be named once; got {', '.join(doubled)} several times.")
    return [_open_one(name, options, alone=len(names) == 1) for name in names]


def _open_one(name: str, options: PrepareOptions, *, alone: bool) -> Source:
    fields, suffixes, largest = options.fields, options.suffixes, options.largest
    if name == INSTALLED:
        return files.read_installed(suffixes=suffixes, largest=largest)
    if name.startswith(HUB):
        return open_hub(name, fields, largest)
    path = Path(name).expanduser()
    if "://" in name or (path.name.lower().endswith(ARCHIVES) and path.is_file()):
        return open_remote(name, fields, suffixes, largest, alone=alone)
    if path.is_dir():
        return files.folder(name, path, suffixes=suffixes, largest=largest, fields=fields)
    if path.name.lower().endswith(TABLES):
        return open_tables(name, [path], fields, largest)
    if path.name.endswith(suffixes) and path.is_file():
        raise UsageError(f"A source must be a folder, not a file in it; name {path.parent}.")
    if path.exists():
        raise UsageError(
            f"A source must be {INSTALLED}, a folder, a table ({', '.join(TABLES)}), an archive ({', '.join(ARCHIVES)}) or {HUB}NAME; "
            f"{name} is another kind of file."
        )
    raise UsageError(
        f'A source must be {INSTALLED}, an existing folder, table or archive, or {HUB}NAME; "{name}" does not exist.'
    )


def _unchanged(work: Path, sources: list[Source]) -> list[Source]:
    """Return the sources after checking that they have not changed since the work began."""
    found = {source.name: source.mark for source in sources}
    state = read_json(work / _STATE)
    if not state["fingerprints"]:
        write_json(work / _STATE, {**state, "fingerprints": found})
        return sources
    changed = [name for name, mark in state["fingerprints"].items() if found[name] != mark]
    if changed:
        raise UsageError(
            f"The sources must not change while they are being gathered; changed: {', '.join(changed)}. "
            "--restart starts over."
        )
    return sources


def _compare(had: dict[str, Any], wanted: dict[str, Any], out: Path) -> None:
    before, now = _flat(had), _flat(wanted)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        changes = "; ".join(f"{name} was {before.get(name)!r}, is {now.get(name)!r}" for name in names)
        raise UsageError(
            f"{out} was prepared with other options: {changes}. --restart deletes it and starts over; "
            "or name another --out."
        )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _plain(options: PrepareOptions) -> dict[str, Any]:
    """The options in the form JSON returns them, without filters that apply to no source."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(options)))
    own = [is_own(name) for name in options.sources]
    if all(own):
        del plain["filters"]
    if not any(own):
        del plain["own_filters"]
    return plain


def _check(options: PrepareOptions) -> None:
    if not all(name.strip() for name in options.sources):
        raise UsageError("A source must be installed, a folder, a table or an address; got an empty name.")
    check_options(options.filters)
    check_options(options.own_filters)
    vocabulary, whole = options.vocabulary_size, "at least 257, for all bytes and the end token"
    for name, value, is_right, wanted in (
        ("--near", options.near, 0 < options.near <= 1, "above 0 and at most 1"),
        ("--validation", options.validation, 0 < options.validation < 1, "between 0 and 1"),
        ("--vocabulary", vocabulary, not vocabulary or vocabulary >= 257, whole),
        ("--suffixes", options.suffixes, options.suffixes and all(options.suffixes), "at least one, such as .py"),
        ("--largest", options.largest, options.largest > 0, "above 0"),
        ("--tokenizer-bytes", options.tokenizer_bytes, options.tokenizer_bytes > 0, "above 0"),
        ("--max-bytes", options.max_bytes, options.max_bytes >= 0, "0 or more"),
        ("--max-group-bytes", options.max_group_bytes, options.max_group_bytes >= 0, "0 or more"),
    ):
        if not is_right:
            raise UsageError(f"{name} must be {wanted}; got {value}.")


def _delete(job: steps.Job) -> None:
    """Delete everything that prepare wrote, data.json first, so that the rest is not mistaken for complete data."""
    (job.out / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(job.work, ignore_errors=True)
    for name in _OURS:
        for file in job.out.glob(f"{name}*"):
            if file.name == name or file.name.startswith(f"{name}.part"):
                file.unlink(missing_ok=True)
