"""An entry of the table of error messages, and how it is read from Markdown.

A file has a title on its first line, and entries of two or three blocks with blank lines between:

    # Title

    - `a wording, in which … stands for any text`
    - `` another one, with `backticks` ``

    What it means, its causes with the most frequent first, where to look and what to change: one paragraph.

    Type: KeyError. Passes on another error. Related rules: one-rule, another-rule.

Each sentence of the last block may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class KnownMessage:
    """A message that people get, and what to do about it."""

    texts: tuple[str, ...]
    """Its wordings, from one version to the next, or for sibling cases; `…` stands for any text."""
    paragraph: str
    """What it means, on one line."""
    rules: tuple[str, ...] = ()
    """Names of rules that look for such a fault."""
    type: str = ""
    """The exception's type, if the text alone would match too much."""
    wraps: bool = False
    """It only passes on another error, whose entry comes first."""


class _Line(NamedTuple):
    file: str
    number: int
    text: str

    def malformed(self, must: str) -> ValueError:
        return ValueError(f"{self.file}:{self.number}: {must}; got {self.text!r}")


_WORDING = re.compile(r"- (?:`([^`]+)`|`` (.+) ``)")
_LAST = re.compile(
    r"(?:Type: (?P<type>\w+)\. ?)?(?:(?P<wraps>Passes on another error)\. ?)?"
    r"(?:Related rules: (?P<rules>[\w-]+(?:, [\w-]+)*)\.)?"
)
# With this, Markdown begins a list, a quotation or a heading.
_NO_TEXT = re.compile(r"(?:[-*+>]|#+|\d+[.)])(?: |$)")


def read_entries(file: str, text: str) -> list[KnownMessage]:
    """The entries of a file.

    Raises:
        ValueError: one is malformed; the message names the file and the line.
    """
    lines = [_Line(file, number, line.strip()) for number, line in enumerate(text.splitlines() or [""], 1)]
    if not lines[0].text.startswith("# "):
        raise lines[0].malformed("a file must begin with its title, such as '# Keras'")
    parts: list[list[list[_Line]]] = []
    for block in (list(block) for filled, block in groupby(lines[1:], lambda line: line.text != "") if filled):
        if block[0].text.startswith("- "):
            parts.append([])
        elif not parts or len(parts[-1]) == 3:
            raise block[0].malformed("an entry must begin with its wordings, each on a line such as '- `wording`'")
        parts[-1].append(block)
    return [_entry(*part) for part in parts]


def _entry(wordings: Sequence[_Line], paragraph: Sequence[_Line] = (), last: Sequence[_Line] = ()) -> KnownMessage:
    texts = tuple(_wording(line) for line in wordings)
    meaning = _joined(paragraph)
    if _LAST.fullmatch(meaning):
        raise wordings[0].malformed("below its wordings, an entry must have a paragraph on what they mean")
    for line in paragraph:
        if _NO_TEXT.match(line.text):
            raise line.malformed("a line of a paragraph must not begin like a list or a heading: break it elsewhere")
    said = _LAST.fullmatch(_joined(last))
    if said is None:
        form = "Type: KeyError. Passes on another error. Related rules: one-rule, another-rule."
        raise last[0].malformed(f"below its paragraph, an entry may have only '{form}', or some of these sentences")
    rules = tuple(said["rules"].split(", ")) if said["rules"] else ()
    return KnownMessage(texts=texts, paragraph=meaning, rules=rules, type=said["type"] or "", wraps=bool(said["wraps"]))


def _wording(line: _Line) -> str:
    found = _WORDING.fullmatch(line.text)
    if found is None:
        raise line.malformed("a wording must read '- `wording`', or '- `` wording ``' if it holds backticks")
    return found[1] or found[2]


def _joined(lines: Sequence[_Line]) -> str:
    return " ".join(line.text for line in lines)
