"""Reads the exceptions out of pasted text: a traceback of Python or a notebook, a log with several, or a bare message."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trainwright.core.quotations import plain

# Of a log, the end is read.
MOST_LINES = 5000
# Of what follows the exception's line, this much is taken as its message: TensorFlow names the cause below a long stack.
MOST_MESSAGE_LINES = 200


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One line of the stack."""

    file: str
    line: int
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """One exception of a pasted text."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    text: str = ""
    """All lines of its traceback."""


_HEADER = re.compile(r"^\s*(?:[\w.]+ +)?Traceback \(most recent call last\)")
# A DataLoader's worker appends the cause to the message: below an exception, not above it.
_CAUSE_BELOW = re.compile(r"^\s*Original Traceback")
_NOT_RAISED = "Exception ignored in"
_NEXT = re.compile(r"^(?:The above exception was the direct cause|During handling of the above exception)")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
# A notebook writes `Cell In[3], line 5`, `File ~/x.py:52, in f(a)` or `<ipython-input-3-ab> in <module>`, and marks the
# line with an arrow.
_NOTEBOOK_FRAME = re.compile(
    r"^(?:(?P<cell>(?:Cell |Input )?In ?\[\d+\])|File (?P<path>.+?\.py):\d+|(?P<old><ipython-input-[^>]+>|\S+\.py) in )"
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+) ?(?P<code>.*)$")
_CARETS = re.compile(r"^[\s~^]+$")
_NAME = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
_RAISED = re.compile(rf"^(?P<type>{_NAME})(?:: ?(?P<message>.*))?$")
# Without a traceback above it, only a line with such a name is an exception.
_LONE = re.compile(rf"(?:^|(?<=\s))(?P<type>(?:{_NAME})?(?:Error|Exception|Warning|Interrupt)): (?P<message>.*)$")
_ASSERTION = re.compile(r"\bAssertion .+ failed")
# What launchers and terminals put before a line.
_PREFIX = re.compile(r"^(?:\[rank\d+\]: ?|> ?)")
# Colab links each file of a notebook's traceback.
_LINK = re.compile(r"^\[(?P<file>[^\]]+)\]\(https?://[^)]*\)")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|[\\/]lib(?:64)?[\\/]python\d|[\\/]Lib[\\/]|[\\/](?:bin|Scripts)[\\/][\w.-]+$|^<(?!ipython|stdin)"
)


def find_raised(text: str) -> list[Raised]:
    """The exceptions in a text, a cause before what it caused; empty if the text holds none."""
    lines = _lines(text)
    starts = [i for i, line in enumerate(lines) if _HEADER.match(line)]
    if not starts:
        return list(_without_traceback(lines))
    found = list(_failed_assertion(lines[: starts[0]]))
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        if start and lines[start - 1].startswith(_NOT_RAISED):
            continue
        one = _of_traceback(lines[start + 1 : end])
        if _CAUSE_BELOW.match(lines[start]) and found:
            found.insert(len(found) - 1, one)
        else:
            found.append(one)
    return found


def users_frame(found: list[Raised]) -> Frame | None:
    """The last frame of the user's code, in the first exception that has one."""
    for one in found:
        for frame in reversed(one.frames):
            if not _LIBRARY.search(frame.file):
                return frame
    return None


def _lines(text: str) -> list[str]:
    lines = plain(text).replace("\r", "\n").split("\n")[-MOST_LINES:]
    return textwrap.dedent("\n".join(_LINK.sub(r"\g<file>", _PREFIX.sub("", line)) for line in lines)).split("\n")


def _failed_assertion(lines: list[str]) -> Iterator[Raised]:
    """What native code printed before the traceback: a GPU's kernels name the check that failed only there."""
    line = next((line for line in lines if _ASSERTION.search(line)), None)
    if line is not None:
        yield Raised(type="", message=line, text=line)


def _without_traceback(lines: list[str]) -> Iterator[Raised]:
    starts = [(i, match) for i, line in enumerate(lines) if (match := _LONE.search(line))]
    ends = [i for i, _ in starts[1:]] + [len(lines)]
    for (start, match), end in zip(starts, ends):
        message = [match["message"], *lines[start + 1 : min(end, start + MOST_MESSAGE_LINES)]]
        yield Raised(type=match["type"], message="\n".join(message), text="\n".join(lines[start:end]))


@dataclass
class _Stack:
    """The frames read so far."""

    frames: list[Frame] = field(default_factory=list)
    notebook_file: str = ""

    def read(self, line: str) -> bool:
        """Whether a line belongs to the stack."""
        if match := _FRAME.match(line):
            self.frames.append(Frame(file=match["file"], line=int(match["line"])))
        elif match := _NOTEBOOK_FRAME.match(line):
            self.notebook_file = match["cell"] or match["path"] or match["old"]
        elif (match := _ARROW.match(line)) and self.notebook_file:
            self.frames.append(Frame(file=self.notebook_file, line=int(match["line"]), code=match["code"].strip()))
        elif line[:1].isspace() or not line:
            self._add_code(line)
        else:
            return bool(re.match(r"^\d+ |^-+$", line))
        return True

    def _add_code(self, line: str) -> None:
        if self.frames and not self.frames[-1].code and line.strip() and not _CARETS.match(line):
            self.frames[-1] = replace(self.frames[-1], code=line.strip())


def _of_traceback(lines: list[str]) -> Raised:
    """The exception of the lines below a traceback's header; without a type if the text ends before it is named."""
    stack = _Stack()
    for i, line in enumerate(lines):
        if stack.read(line):
            continue
        if match := _RAISED.match(line):
            message = [match["message"] or ""]
            for further in lines[i + 1 : i + MOST_MESSAGE_LINES]:
                if _NEXT.match(further):
                    break
                message.append(further)
            text = "\n".join([*lines[:i], match["type"] + ": " + "\n".join(message)])
            return Raised(type=match["type"], message="\n".join(message), frames=tuple(stack.frames), text=text)
    return Raised(type="", message="", frames=tuple(stack.frames), text="\n".join(lines))
