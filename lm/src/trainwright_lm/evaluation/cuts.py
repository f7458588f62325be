"""Positions in held-out code to complete from: anywhere in a line, and at library calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainwright_lm.evaluation.code_lines import CodeLine, code_lines, library_names, read_statements

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
    documents: Iterable[tuple[int, str]],
    *,
    counts: Mapping[Kind, int],
    libraries: Sequence[str],
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> dict[Kind, list[Cut]]:
    """Find the requested number of cuts of each kind, or as many as exist.

    Documents take turns, in input order: a second cut of one comes after the first of all others. So do libraries, so
    that one used in every file (numpy) does not crowd out the others.

    Args:
        documents: Numbers and texts.
        libraries: Top-level packages whose calls to look for.
        seed: Determines the positions, independently for each document.
        advance: Called after each document.
    """
    turns: dict[Kind, dict[str, list[list[Cut]]]] = {kind: {} for kind in counts}
    for number, text in documents:
        generator = np.random.default_rng([seed, number])
        statements = read_statements(text)
        lines = code_lines(text, statements)
        for kind in counts:
            if kind == "random":
                cuts = _random_cuts(number, text, lines, generator)
            else:
                names = library_names(statements, libraries)
                cuts = _call_cuts(number, text, lines, names, libraries, generator)
            for library in {cut.library: None for cut in cuts}:
                own = [cut for cut in cuts if cut.library == library]
                turns[kind].setdefault(library, []).append(own[:_MOST_OF_ONE_DOCUMENT])
        advance()
    return {kind: _taken(turns[kind], count) for kind, count in counts.items()}


def _taken(turns: Mapping[str, Sequence[Sequence[Cut]]], count: int) -> list[Cut]:
    """The first `count` cuts, taking turns by library and, within one, by document; sorted by document and position."""
    libraries = [list(_in_turn(turns[library])) for library in sorted(turns)]
    chosen = list(_in_turn(libraries))[:count]
    return sorted(chosen, key=lambda cut: (cut.document, cut.position))


def _in_turn(rows: Sequence[Sequence[Cut]]) -> Iterator[Cut]:
    for place in range(max((len(row) for row in rows), default=0)):
        for row in rows:
            if place < len(row):
                yield row[place]


def _random_cuts(number: int, text: str, lines: Sequence[CodeLine], generator: np.random.Generator) -> list[Cut]:
    """One cut in each of some lines, with at least one character of code on both sides."""
    long_enough = [line for line in lines if line.end - line.start >= 2]
    chosen = generator.permutation(len(long_enough))[:_MOST_OF_ONE_DOCUMENT]
    return [
        Cut(document=number, text=text, position=int(generator.integers(line.start + 1, line.end)))
        for line in (long_enough[i] for i in chosen)
    ]


def _call_cuts(
    number: int,
    text: str,
    lines: Sequence[CodeLine],
    names: Mapping[str, str],
    libraries: Sequence[str],
    generator: np.random.Generator,
) -> list[Cut]:
    """Cuts where a call of a library begins, in a random order."""
    imported = set(names.values())
    known = {name: one for one in libraries if one in imported for name in CUSTOMARY_NAMES.get(one, ())}
    methods = {name: one for one in libraries if one in imported for name in METHODS.get(one, ())}
    found = [cut for line in lines for cut in _calls(number, text, line, {**known, **names}, methods)]
    return [found[i] for i in generator.permutation(len(found))]


def _calls(
    number: int, text: str, line: CodeLine, names: Mapping[str, str], methods: Mapping[str, str]
) -> Iterator[Cut]:
    lexemes = line.lexemes
    words = [lexeme.text for lexeme in lexemes]
    for i, word in enumerate(words[:-1]):
        follows_dot = i > 0 and words[i - 1] == "."
        if word in names and not follows_dot and _calls_part(words, i):
            library, last = names[word], i + 1
        elif word in methods and follows_dot and words[i + 1] == "(":
            library, last = methods[word], i + 1
        else:
            continue
        position = lexemes[last].end
        if position < line.end:
            begin = lexemes[i - 1 if follows_dot else i].start
            yield Cut(document=number, text=text, position=position, library=library, prompt_end=text[begin:position])


def _calls_part(words: Sequence[str], i: int) -> bool:
    """Whether the i-th word, in dots and names, is part of a call: `np.random.rand(`."""
    j = i + 1
    while j + 1 < len(words) and words[j] == "." and words[j + 1].isidentifier():
        j += 2
    return j > i + 1 and j < len(words) and words[j] == "("
