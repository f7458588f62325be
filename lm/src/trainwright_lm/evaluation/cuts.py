"""Positions in held-out code to complete from: anywhere in a line that contains only code, and at library calls."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from tokenize import TokenInfo
from typing import Literal, NamedTuple

import numpy as np

# Tokens that mark structure and have no text within a line.
_SILENT = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}
# Python 3.12 and later split an f-string into several tokens.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


class Lexeme(NamedTuple):
    """One token of a line."""

    text: str
    start: int
    """Offset in characters from the beginning of the document."""
    end: int
    """The offset just after it."""


CodeLine = Sequence[Lexeme]
"""A line of code without a comment, a docstring or part of a multi-line string."""


def read_statements(text: str) -> list[list[TokenInfo]]:
    """A document's logical lines as lists of tokens, up to the first error."""
    statements: list[list[TokenInfo]] = [[]]
    if "\r" in text.replace("\r\n", ""):  # it is ambiguous what ends a line
        return []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.ERRORTOKEN and not token.string.isspace():
                break
            statements[-1].append(token)
            if token.type == tokenize.NEWLINE:
                statements.append([])
    except (tokenize.TokenError, SyntaxError):
        pass
    # The last one is incomplete: it is empty, or precedes an error.
    return statements[:-1]


def code_lines(text: str, statements: Sequence[Sequence[TokenInfo]]) -> list[CodeLine]:
    """The document's lines that contain only code, in order."""
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    rows: dict[int, list[TokenInfo]] = defaultdict(list)
    barred: set[int] = set()
    for statement in statements:
        barred |= _barred_rows(statement)
        for token in statement:
            if token.type not in _SILENT and token.string:
                rows[token.start[0]].append(token)
    lines: list[CodeLine] = []
    for row, tokens in sorted(rows.items()):
        begins = [starts[row - 1] + token.start[1] for token in tokens]
        line = [Lexeme(token.string, at, at + len(token.string)) for token, at in zip(tokens, begins)]
        if row not in barred and all(text.startswith(one.text, one.start) for one in line):
            lines.append(line)
    return lines


def library_names(statements: Sequence[Sequence[TokenInfo]], libraries: Sequence[str]) -> dict[str, str]:
    """The names that a document's imports bind to libraries or their parts, each with its library."""
    found: dict[str, str] = {}
    for statement in statements:
        words = [token.string for token in statement if token.type in (tokenize.NAME, tokenize.OP)]
        if words[:1] in (["import"], ["from"]):
            found |= {name: library for name, library in _bound(" ".join(words)) if library in libraries}
    return found


def _bound(statement: str) -> Iterator[tuple[str, str]]:
    """(name, top-level package) for each name that an import statement binds."""
    try:
        body = ast.parse(statement).body
    except SyntaxError:
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name.split(".")[0], one.name.split(".")[0]) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((one.asname or one.name, str(node.module).split(".")[0]) for one in node.names)


def _barred_rows(statement: Sequence[TokenInfo]) -> set[int]:
    """Rows with a comment, or with part of a string that is a statement or spans several lines."""
    rows: set[int] = set()
    loud = [token for token in statement if token.type not in _SILENT and token.type != tokenize.COMMENT]
    only_text = all(token.type == tokenize.STRING for token in loud)
    fstrings: list[int] = []
    for token in statement:
        first, last = token.start[0], token.end[0]
        if token.type == _FSTRING_START:
            fstrings.append(first)
        elif token.type == _FSTRING_END and fstrings:
            first = fstrings.pop()
        if token.type == tokenize.COMMENT or (token.type not in _SILENT and (first != last or only_text)):
            rows.update(range(first, last + 1))
    return rows


Kind = Literal["random", "call"]
KINDS: tuple[Kind, ...] = ("random", "call")

# Libraries to look for if the data was not selected by keywords.
DATA_SCIENCE = ("pandas", "sklearn", "matplotlib", "seaborn")
# Used in nearly every data-science file, in addition to the libraries that the data was selected by.
COMMON_LIBRARIES = ("numpy",)
# Conventional names that no import binds, as in the libraries' documentation.
CUSTOMARY_NAMES: Mapping[str, tuple[str, ...]] = {"pandas": ("df",), "matplotlib": ("ax", "fig")}
# Methods so typical of a library that calling one counts as a call of it, whatever the object's name.
METHODS: Mapping[str, tuple[str, ...]] = {
    "sklearn": ("fit", "fit_transform", "transform", "predict", "predict_proba"),
    "pandas": ("groupby", "merge", "read_csv", "sort_values", "fillna", "drop", "agg"),
}
# Maximum number of cuts per document; documents take turns, so more would rarely be used.
_MOST_OF_ONE_DOCUMENT = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """A position in a document; the rest of its line is to be completed."""

    document: int
    """The document's number in the split."""
    text: str
    """The whole document."""
    position: int
    """Offset in characters."""
    library: str = ""
    """The library whose call begins here; empty for a random cut."""
    prompt_end: str = ""
    """The words just before the position that make it a call: `plt.` or `.fit(`."""

    @property
    def before(self) -> str:
        """The document up to the position."""
        return self.text[: self.position]

    @property
    def typed(self) -> str:
        """The line up to the position."""
        return self.text[self.text.rfind("\n", 0, self.position) + 1 : self.position]

    @property
    def rest(self) -> str:
        """The rest of the line without trailing space; never empty."""
        return self.text[self.position :].split("\n", 1)[0].rstrip()


def find_cuts(
    documents: Iterable[tuple[int, str]], *, counts: Mapping[Kind, int], libraries: Sequence[str], seed: int = 0
) -> dict[Kind, list[Cut]]:
    """Find the requested number of cuts of each kind, or as many as exist.

    Documents take turns, in input order: a second cut of one comes after the first of all others. So do libraries, so
    that one used in every file (numpy) does not crowd out the others.

    Args:
        documents: Numbers and texts.
        libraries: Top-level packages whose calls to look for.
        seed: Determines the positions, independently for each document.
    """
    turns: dict[Kind, dict[str, list[list[Cut]]]] = {kind: {} for kind in counts}
    for number, text in documents:
        generator = np.random.default_rng([seed, number])
        statements = read_statements(text)
        lines = code_lines(text, statements)
        for kind in counts:
            if kind == "random":
                places = _random_places(lines, generator)
            else:
                places = _call_places(lines, library_names(statements, libraries), libraries, generator)
            cuts = [
                Cut(document=number, text=text, position=at, library=library, prompt_end=text[begin:at])
                for begin, at, library in places
            ]
            for library in {cut.library: None for cut in cuts}:
                own = [cut for cut in cuts if cut.library == library]
                turns[kind].setdefault(library, []).append(own[:_MOST_OF_ONE_DOCUMENT])
    return {kind: _taken(turns[kind], count) for kind, count in counts.items()}


def _taken(turns: Mapping[str, Sequence[Sequence[Cut]]], count: int) -> list[Cut]:
    """The first `count` cuts, taking turns by library and, within one, by document; sorted by document and position."""
    libraries = [list(_in_turn(turns[library])) for library in sorted(turns)]
    chosen = list(_in_turn(libraries))[:count]
    return sorted(chosen, key=lambda cut: (cut.document, cut.position))


def _in_turn(rows: Sequence[Sequence[Cut]]) -> Iterator[Cut]:
    return (cut for turn in zip_longest(*rows) for cut in turn if cut is not None)


Place = tuple[int, int, str]
"""Where the words before a cut begin that make it a call, the cut's position, and the library."""


def _random_places(lines: Sequence[CodeLine], generator: np.random.Generator) -> list[Place]:
    """One place in each of some lines, with at least one character of code on both sides."""
    long_enough = [line for line in lines if line[-1].end - line[0].start >= 2]
    chosen = [long_enough[i] for i in generator.permutation(len(long_enough))[:_MOST_OF_ONE_DOCUMENT]]
    positions = [int(generator.integers(line[0].start + 1, line[-1].end)) for line in chosen]
    return [(at, at, "") for at in positions]


def _call_places(
    lines: Sequence[CodeLine], names: Mapping[str, str], libraries: Sequence[str], generator: np.random.Generator
) -> list[Place]:
    """Where calls of libraries begin, in a random order."""
    imported = set(names.values())
    known = {name: one for one in libraries if one in imported for name in CUSTOMARY_NAMES.get(one, ())}
    methods = {name: one for one in libraries if one in imported for name in METHODS.get(one, ())}
    found = [place for line in lines for place in _calls(line, {**known, **names}, methods)]
    return [found[i] for i in generator.permutation(len(found))]


def _calls(line: CodeLine, names: Mapping[str, str], methods: Mapping[str, str]) -> Iterator[Place]:
    words = [lexeme.text for lexeme in line]
    for i, word in enumerate(words[:-1]):
        follows_dot = i > 0 and words[i - 1] == "."
        if word in names and not follows_dot and _calls_part(words, i):
            library = names[word]
        elif word in methods and follows_dot and words[i + 1] == "(":
            library = methods[word]
        else:
            continue
        position = line[i + 1].end
        if position < line[-1].end:
            yield line[i - 1 if follows_dot else i].start, position, library


def _calls_part(words: Sequence[str], i: int) -> bool:
    """Whether the i-th word, in dots and names, is part of a call: `np.random.rand(`."""
    j = i + 1
    while j + 1 < len(words) and words[j] == "." and words[j + 1].isidentifier():
        j += 2
    return j > i + 1 and j < len(words) and words[j] == "("
