"""Good scripts that are kept as a change of the bad one beside them: `good.patch`, in the form of exam/patches.py."""

import functools
import shutil
import tempfile
from pathlib import Path

from exam.patches import patches

PATCHES = "good.patch"


def find_scripts(folder: Path, pattern: str) -> list[Path]:
    """The scripts in a folder that match, also those that a patch alone holds."""
    patched = (file.parent / patch.name for file in folder.rglob(PATCHES) for patch in patches(file))
    return sorted({*folder.glob(pattern), *(path for path in patched if path.relative_to(folder).match(pattern))})


@functools.cache
def write_script(script: Path) -> Path:
    """Where the script stands; one that a patch holds is written into a temporary folder, with the files beside it."""
    if script.exists():
        return script
    patch = next(patch for patch in patches(script.parent / PATCHES) if patch.name == script.name)
    folder = Path(_make_folder().name) / script.parent.name
    shutil.copytree(script.parent, folder, dirs_exist_ok=True)
    written = folder / script.name
    written.write_text(patch.text, encoding="utf-8")
    return written


@functools.cache
def _make_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="twins-")
