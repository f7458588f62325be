"""Opens sources by name."""

from __future__ import annotations

from pathlib import Path

from trainwright.errors import UsageError
from trainwright_lm.corpus.sources import ARCHIVES, HUB, INSTALLED, LARGEST_BYTES, TABLES, Fields, Source


def open_sources(
    names: tuple[str, ...],
    *,
    fields: Fields | None = None,
    suffixes: tuple[str, ...] = (".py",),
    largest: int = LARGEST_BYTES,
) -> list[Source]:
    """Open the sources with these names; without names, `installed`.

    Args:
        suffixes: File name suffixes to read in folders and packages.
        largest: Maximum size of a file or row, in bytes.

    Raises:
        UsageError: if a name is repeated or is not a folder, a table or a known word.
        ReadError: if a source cannot be read.
    """
    names = names or (INSTALLED,)
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise UsageError(f"Each source must be named once; got {', '.join(doubled)} several times.")
    return [_open(name, fields or Fields(), suffixes, largest, alone=len(names) == 1) for name in names]


def _open(name: str, fields: Fields, suffixes: tuple[str, ...], largest: int, *, alone: bool) -> Source:
    # The readers are imported only when needed: pyarrow and huggingface_hub are slow to import.
    from trainwright_lm.corpus import files

    if name == INSTALLED:
        return files.installed(suffixes=suffixes, largest=largest)
    if name.startswith(HUB):
        from trainwright_lm.corpus.hub import open_hub

        return open_hub(name, fields, largest)
    path = Path(name).expanduser()
    if "://" in name or (path.name.lower().endswith(ARCHIVES) and path.is_file()):
        from trainwright_lm.corpus.remote import open_remote

        return open_remote(name, fields, suffixes, largest, alone=alone)
    if path.is_dir():
        return files.folder(name, path, suffixes=suffixes, largest=largest, fields=fields)
    if path.name.lower().endswith(TABLES):
        from trainwright_lm.corpus.tables import open_tables

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
