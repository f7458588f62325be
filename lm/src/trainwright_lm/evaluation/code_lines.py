"""Python lines that contain only code, and the names by which a file refers to libraries."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from tokenize import TokenInfo

# Tokens that mark structure and have no text within a line.
_SILENT = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}
# Python 3.12 and later split an f-string into several tokens.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lexeme:
    """One token of a line."""

    text: str
    start: int
    """Offset in characters from the beginning of the document."""
    is_name: bool

    @property
    def end(self) -> int:
        """The offset just after it."""
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLine:
    """A line of code without a comment, a docstring or part of a multi-line string."""

    lexemes: tuple[Lexeme, ...]

    @property
    def start(self) -> int:
        """The offset of its first character of code, after the indentation."""
        return self.lexemes[0].start

    @property
    def end(self) -> int:
        """The offset just after its code."""
        return self.lexemes[-1].end


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
    starts = _line_starts(text)
    rows: dict[int, list[TokenInfo]] = defaultdict(list)
    barred: set[int] = set()
    for statement in statements:
        barred |= _barred_rows(statement)
        for token in statement:
            if token.type not in _SILENT and token.string:
                rows[token.start[0]].append(token)
    lines = []
    for row, tokens in sorted(rows.items()):
        lexemes = tuple(_lexeme(token, starts[row - 1]) for token in tokens)
        if row not in barred and all(text.startswith(one.text, one.start) for one in lexemes):
            lines.append(CodeLine(lexemes=lexemes))
    return lines


def library_names(statements: Sequence[Sequence[TokenInfo]], libraries: Sequence[str]) -> dict[str, str]:
    """The names that a document's imports bind to libraries or their parts, each with its library."""
    found: dict[str, str] = {}
    for statement in statements:
        words = [t.string for t in statement if t.type in (tokenize.NAME, tokenize.OP)]
        for name, root in _bound(words):
            if root in libraries:
                found[name] = root
    return found


def _line_starts(text: str) -> list[int]:
    starts = [0]
    while (end := text.find("\n", starts[-1])) >= 0:
        starts.append(end + 1)
    return [*starts, len(text)]


def _lexeme(token: TokenInfo, line_start: int) -> Lexeme:
    return Lexeme(text=token.string, start=line_start + token.start[1], is_name=token.type == tokenize.NAME)


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


def _bound(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, top-level package) for each name that an import statement binds."""
    if words[:1] == ["import"]:
        for part in _split(words[1:]):
            name = part[-1] if "as" in part else part[0]
            yield name, part[0]
    elif words[:1] == ["from"] and "import" in words:
        names = [word for word in words[words.index("import") + 1 :] if word not in ("(", ")")]
        for part in _split(names):
            yield part[-1], words[1]


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    """The nonempty parts between commas."""
    part: list[str] = []
    for word in [*words, ","]:
        if word != ",":
            part.append(word)
        elif part:
            yield part
            part = []
