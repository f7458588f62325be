"""Programs that are kept as a small change of the program beside them: files of patches, in the form of `diff -u`.

    .venv/bin/python -m exam.patches FILE FOLDER    write the programs of a file into a folder

    --- sound.py
    +++ sound_bad.py
    @@
     loss.backward()
     optimizer.step()
    -optimizer.zero_grad()

Each change tells its place by the lines that it keeps and takes away: together they stand in the program exactly once.
Numbers behind `@@` are not read, so that a patch can be written by hand, and outlives changes elsewhere in its program. What
stands before the first patch is for the reader.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"^--- (\S+).*\n\+\+\+ (\S+).*\n", re.MULTILINE)
_CHANGE = re.compile(r"^@@.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """One program, as it differs from another."""

    file: Path
    program: str  # what it changes, in the folder of the file
    name: str  # of the changed program
    changes: str

    @property
    def text(self) -> str:
        """The changed program."""
        before, *changes = _CHANGE.split(self.changes)
        if before.strip() or not changes:
            raise ValueError(f"{self._place}: a line `@@` must stand between the two names and the first change")
        lines = (self.file.parent / self.program).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for change in changes:
            lines = self._changed(lines, change.rstrip("\n").split("\n"))
        return "\n".join(lines) + "\n"

    def _changed(self, lines: list[str], change: list[str]) -> list[str]:
        if wrong := [line for line in change if line and line[0] not in " +-"]:
            raise ValueError(f"{self._place}: a line must begin with a space, `-` or `+`; got {wrong[0]!r}")
        # An empty line that is kept may have lost its space.
        old = [line[1:] for line in change if not line.startswith("+")]
        new = [line[1:] for line in change if not line.startswith("-")]
        places = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
        if not old or len(places) != 1:
            raise ValueError(
                f"{self._place}: the lines that a change keeps and takes away must stand in {self.program} exactly once; "
                f"found {len(places)} times. Write them as they stand there, with more of the lines around them if they "
                "stand there several times:\n" + "\n".join(change)
            )
        return [*lines[: places[0]], *new, *lines[places[0] + len(old) :]]

    @property
    def _place(self) -> str:
        return f"{self.file.name}, {self.name}"


def patches(file: Path) -> list[Patch]:
    """Those of a file, in its order."""
    _, *parts = _HEAD.split(file.read_text(encoding="utf-8"))
    return [Patch(file, *parts[i : i + 3]) for i in range(0, len(parts), 3)]


def main(file: str, folder: str) -> None:
    """Write the programs of a file into a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for patch in patches(Path(file)):
        (Path(folder) / patch.name).write_text(patch.text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
