"""File sources: the packages of this environment, folders, git checkouts.

Files are ordered by a hash of their path, so stopping anywhere leaves an even sample.
"""

from __future__ import annotations

import csv
import importlib.metadata
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import xxhash

from trainwright.errors import ReadError
from trainwright_lm.corpus import licences
from trainwright_lm.corpus.sources import INSTALLED, TABLES, Fields, Item, Source, StoredFile
from trainwright_lm.corpus.tables import open_tables

# File types to mention when a folder has no source code.
_ENDS_TOLD = 3


def read_installed(*, suffixes: tuple[str, ...], largest: int, paths: list[str] | None = None) -> Source:
    """The files of the distributions in this environment; each is a group, with the license from its metadata.

    Args:
        paths: Folders to search for distributions; None: those on Python's import path.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    for distribution in importlib.metadata.distributions(path=sys.path if paths is None else paths):
        name = str(distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name:
            found.setdefault(name, distribution)
    files: dict[str, StoredFile] = {}
    for name in sorted(found):
        licence = _licence(found[name])
        for path in _recorded(found[name]):
            if path.endswith(suffixes) and not path.startswith(("..", "/")):
                file = str(found[name].locate_file(path))
                files.setdefault(file, StoredFile(name=file, path=path, group=name, licence=licence))
    if not files:
        raise ReadError(
            f"The packages of this environment have no files that end in {' or '.join(suffixes)}; name another source."
        )
    return _source(INSTALLED, files.values(), own=False, largest=largest)


def folder(name: str, root: Path, *, suffixes: tuple[str, ...], largest: int, fields: Fields) -> Source:
    """The files of a folder, grouped by first-level folder. A git checkout is one group, without the files git ignores.

    Folders whose names begin with a dot, bytecode caches and virtual environments are skipped, and symbolic links to
    folders are not followed. Without source files, it is the folder's tables.

    Raises:
        ReadError: if the folder or git's file list cannot be read, or no file matches.
    """
    root = root.absolute()
    if (root / ".git").exists():
        files = _checkout(root, suffixes)
    else:
        files = []
        for entry in _entries(root):
            if entry.is_dir(follow_symlinks=False):
                if not _left_out(Path(entry.path)):
                    files += _group(Path(entry.path), suffixes)
            elif entry.name.endswith(suffixes):
                files.append(
                    StoredFile(
                        name=entry.path, path=entry.name, group=root.resolve().name, licence=licences.of_folder(root)
                    )
                )
    if not files and (tables := [file for file in _check(root) if file.name.lower().endswith(TABLES)]):
        return open_tables(name, tables, fields, largest)
    if not files:
        raise ReadError(f"{name} must hold files that end in {' or '.join(suffixes)}; {_instead(root)}")
    return _source(name, files, own=True, largest=largest)


def _instead(root: Path) -> str:
    """What a folder contains instead of source files, and what to do about it."""
    if not _entries(root):
        return "it is empty. Name the folder with your code."
    ends = Counter(file.suffix for file in _check(root) if file.suffix)
    if not ends:
        return "it has none."
    told = ", ".join(f"{count} {end}" for end, count in ends.most_common(_ENDS_TOLD))
    return f"it has none, but {told}. --suffixes {ends.most_common(1)[0][0]} reads those."


def _group(root: Path, suffixes: tuple[str, ...]) -> list[StoredFile]:
    if (root / ".git").exists():
        return [replace(file, path=f"{root.name}/{file.path}") for file in _checkout(root, suffixes)]
    licence = licences.of_folder(root) or licences.of_folder(root.parent)
    return [
        StoredFile(name=str(file), path=f"{root.name}/{file.relative_to(root)}", group=root.name, licence=licence)
        for file in _check(root)
        if file.name.endswith(suffixes)
    ]


def _checkout(root: Path, suffixes: tuple[str, ...]) -> list[StoredFile]:
    # Tracked files, and untracked files that are not ignored, so new code counts.
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    except FileNotFoundError as error:
        raise ReadError(f"{root} is a git checkout, but git is not installed; install it.") from error
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        why = (error.stderr or b"").decode(errors="replace").strip() or str(error)
        raise ReadError(f"git must be able to list the files of {root}: {why}") from error
    licence = licences.of_folder(root)
    paths = sorted({os.fsdecode(path) for path in done.stdout.split(b"\0") if path})
    return [
        StoredFile(name=str(root / path), path=_shown(path), group=root.resolve().name, licence=licence)
        for path in paths
        if path.endswith(suffixes) and not any(_left_out(root / above) for above in Path(path).parents[:-1])
    ]


def _check(root: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise ReadError(f"{error.filename} must be a readable folder: {error.strerror}") from error

    for parent, folders, names in os.walk(root, onerror=fail):
        folders[:] = sorted(name for name in folders if not _left_out(Path(parent, name)))
        yield from (Path(parent, name) for name in sorted(names))


def _left_out(directory: Path) -> bool:
    named = directory.name.startswith(".") or directory.name in ("__pycache__", "node_modules")
    return named or (directory / "pyvenv.cfg").exists()


def _entries(root: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise ReadError(f"{root} must be a readable folder: {error.strerror}") from error


def _recorded(distribution: importlib.metadata.Distribution) -> list[str]:
    """Paths of the files that the installer recorded, relative to the distribution's folder."""
    record = distribution.read_text("RECORD")
    if record is not None:
        return [row[0] for row in csv.reader(record.splitlines()) if row]
    return [str(path) for path in distribution.files or ()]


def _licence(distribution: importlib.metadata.Distribution) -> str | None:
    metadata = distribution.metadata
    texts = [_licence_text(distribution, str(name)) for name in (metadata.get_all("License-File") or ())[:3]]
    return licences.of_metadata(metadata, texts)


def _licence_text(distribution: importlib.metadata.Distribution, name: str) -> str:
    try:
        return distribution.read_text(name) or distribution.read_text(f"licenses/{name}") or ""
    except (OSError, UnicodeDecodeError):
        return ""


def _source(name: str, files: Iterable[StoredFile], *, own: bool, largest: int) -> Source:
    """The files with their sizes and times, ordered by a hash of their path within the group."""
    ordered = sorted(
        map(_looked_at, files),
        key=lambda f: (xxhash.xxh3_64_intdigest(f"{f.group}/{f.path}".encode()), f.group, f.path),
    )
    digest = xxhash.xxh3_128()
    for file in ordered:
        digest.update(repr((file.path, file.group, file.licence, file.size, file.time_ns)).encode())
    return Source(name=name, own=own, files=ordered, mark=digest.hexdigest(), read=partial(_items, largest))


def _looked_at(file: StoredFile) -> StoredFile:
    try:
        status = Path(file.name).stat()
        size, time_ns = status.st_size, status.st_mtime_ns
    except OSError:
        size, time_ns = -1, 0
    return replace(file, path=_shown(file.path), group=_shown(file.group), size=size, time_ns=time_ns)


def _shown(path: str) -> str:
    """A path as encodable text; file names on disk need not be valid UTF-8."""
    return os.fsencode(path).decode("utf-8", errors="replace")


def _items(largest: int, file: StoredFile, first: int) -> Iterator[Item]:
    """The file as the only item."""
    if first:
        return
    content, problem = b"", ""
    try:
        if file.size > largest:
            problem = "huge"
        elif not Path(file.name).is_file():  # reading a pipe would block
            problem = "unreadable"
        else:
            with Path(file.name).open("rb") as stream:
                content = stream.read(largest + 1)
    except OSError:
        problem = "unreadable"
    size = max(file.size, 0)
    yield Item(content=content, path=file.path, group=file.group, licence=file.licence, problem=problem, size=size)
