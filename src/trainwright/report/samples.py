"""Single rows, what was answered, and the classes, in words."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterable, Sequence

from trainwright.core.sample import MASKED, NOT_FINITE, PADDING, WORST, ConfusedRow, GeneratedText, Sample, SamplePart
from trainwright.core.sheet import HELD_OUT, Sheet
from trainwright.report.curves import sparkline
from trainwright.report.words import Line, value_of

TITLE = "Rows as the model received them"
GENERATED = "What it generates"
# Rows of a set in a terminal: as they come, and those with the highest loss; characters of one, and of a text that has a line of
# its own below.
BRIEF_ROWS, BRIEF_WORST, BRIEF_CHARACTERS, BRIEF_TEXT = 2, 3, 32, 84
# Characters of each part of such a text, as a pair's two sentences, at least.
BRIEF_PART = 12
# Characters of the end of a prompt.
BRIEF_END = 20
# Columns of a table in one line of a terminal.
BRIEF_COLUMNS = 3


def moment(rows: Sequence[Sample]) -> str:
    """When these rows were answered."""
    last = max(row.update for row in rows)
    if not any(row.answer for row in rows):
        return "not answered"
    return f"answered up to update {last:,}" if last else "answered before training"


def groups(sheet: Sheet) -> list[tuple[str, list[Sample]]]:
    """The rows by their set and output, each with a title."""
    by_set = itertools.groupby(sheet.samples, key=lambda one: (one.rows_of, one.output))
    return [(f"{_of(rows_of)}{f', {of}' if of else ''}", list(rows)) for (rows_of, of), rows in by_set]


def _of(rows_of: str) -> str:
    return "Held-out rows" if rows_of == HELD_OUT else "Training rows"


def origin(one: GeneratedText) -> str:
    """Of which row a text was generated."""
    number = "" if one.row is None else f" {one.row:,}"
    return f"{one.rows_of} row{number}, after update {one.update:,}"


def brief_generated(sheet: Sheet) -> tuple[Line, ...]:
    """A line each: the end of the prompt, what was generated, and what stands in the row."""
    told = ((_end(o.prompt), f"→ {_begin(o.text)}", f"in the row: {_begin(o.expected)}") for o in sheet.generated)
    return tuple(map(Line, told))


def _begin(text: str, most: int = BRIEF_CHARACTERS) -> str:
    told = visible(text)
    return told if len(told) <= most else f"{told[: most - 1]}…"


def _end(text: str) -> str:
    told = visible(text)
    return told if len(told) <= BRIEF_END else "…" + told[1 - BRIEF_END :]


def head(sample: Sample) -> str:
    """Which row it is, and why it is shown."""
    number = "" if sample.row is None else f"row {sample.row:,}, "
    return number + ", ".join(sample.why)


def outcome(sample: Sample, *, is_brief: bool = False) -> str:
    """Label and answer, and the loss; brief: without it."""
    parts = [f"label {sample.label}"] if sample.label else []
    sure = "" if sample.probability is None else f"{sample.probability:.0%}"
    sure = f" {sure}" if is_brief or not sure else f" ({sure})"
    parts += [f"{'answered ' if sample.label else ''}{sample.answer}{sure}".rstrip()] if sample.answer else []
    parts += [] if sample.loss is None or is_brief else [f"loss {value_of(sample.loss)}"]
    return ", ".join(parts)


def verdict(sample: Sample) -> str:
    """`right`, `wrong` or nothing."""
    return "" if sample.right is None else "right" if sample.right else "wrong"


def extent(part: SamplePart) -> tuple[float, float]:
    """The least and the greatest number of a part's lines."""
    known = [value for line in part.lines for value in line if math.isfinite(value)]
    return min(known, default=0.0), max(known, default=0.0)


def same_answer(sheet: Sheet) -> str:
    """Said where all rows of the last evaluation got one answer."""
    rows = sheet.confused
    if len(rows) < 2 or sum(any(row.counts) for row in rows) < 2:
        return ""
    total = [sum(row.counts[i] for row in rows) for i in range(len(rows))]
    given = [i for i, count in enumerate(total) if count]
    return f"It always answers {rows[0].answers[given[0]]}: all {sum(total):,} rows." if len(given) == 1 else ""


def shade(row: ConfusedRow, place: int) -> float:
    """How dark a cell of the table of confusions is: its share of the row."""
    return row.counts[place] / max(sum(row.counts), 1)


def brief_rows(sheet: Sheet) -> tuple[Line, ...]:
    """Two rows of each set, then the worst of the held-out ones: in a line each, or with a longer text in a line below."""
    lines: list[Line] = []
    for number, (title, rows) in enumerate(groups(sheet)[:2]):
        usual = [row for row in rows if NOT_FINITE in row.why or "at random" in row.why][:BRIEF_ROWS]
        worst = [row for row in reversed(rows) if WORST in row.why and row not in usual][: 0 if number else BRIEF_WORST]
        named = [(title.split(" ")[0].lower(), row) for row in usual] + [("worst", row) for row in worst]
        lines += [line for name, row in named for line in _brief(name, row)]
    told = same_answer(sheet)
    return (*((Line((told,)),) if told else ()), *lines)


def _brief(name: str, row: Sample) -> tuple[Line, ...]:
    shown = "; ".join(part for part in map(_brief_part, row.inputs) if part)
    mark = NOT_FINITE if NOT_FINITE in row.why else "wrong" if row.right is False else ""
    told = visible(outcome(row, is_brief=True))
    if len(shown) > BRIEF_CHARACTERS and row.inputs[0].form == "text":
        return (Line((name, told), mark), Line(("", _brief_text(row.inputs))))
    return (Line((name, _begin(shown), told), mark),)


def _brief_text(inputs: Sequence[SamplePart]) -> str:
    """The beginning of each piece of a row's texts, so much of each that all find room; of many, the first pieces."""
    spans = [span for part in inputs if part.form == "text" for span in part.spans if span.kind != PADDING]
    pieces = [(visible(span.text), span.kind) for span in spans if span.text.strip()]
    shown = list(pieces)
    while len(shown) > 1 and _room(shown) < BRIEF_PART:
        shown.pop()
    room = _room(shown)
    told = [_marked(_begin(text, room), kind) for text, kind in shown]
    return "".join(told) + ("…" if len(shown) < len(pieces) and not told[-1].endswith("…") else "")


def _room(pieces: Sequence[tuple[str, str]]) -> int:
    """How many characters of each piece can be shown."""
    left = BRIEF_TEXT
    lengths = sorted(len(text) for text, _ in pieces)
    for number, length in enumerate(lengths):
        share = left // (len(lengths) - number)
        if length > share:
            return share
        left -= length
    return BRIEF_TEXT


def _brief_part(part: SamplePart) -> str:
    if part.form == "text":
        told = "".join(_marked(span.text, span.kind) for span in part.spans)
    elif part.form == "table":
        every = sorted(cells(part), key=lambda cell: cell[1] not in ("nan", "inf", "-inf"))
        shown = every[:BRIEF_COLUMNS]
        told = ", ".join(f"{name} {value}" for name, value in shown)
        told += " …" if len(part.names) > BRIEF_COLUMNS else ""
    elif part.lines:
        told = sparkline(part.lines[0])
    else:
        told = f"{'picture' if part.form == 'picture' else ''} {part.note}".strip()
    return f"{part.name} {visible(told)}" if part.name and part.form != "table" else visible(told)


def _marked(text: str, kind: str) -> str:
    """Padding is left out in a line, and what the loss does not count stands in brackets."""
    return "" if kind == PADDING else f"⟨{text}⟩" if kind == MASKED else text


def visible(text: str) -> str:
    """The text in one line, with a stand-in for each control character."""
    return "".join(_stand_in(one) for one in " ".join(text.split(" ")))


def _stand_in(character: str) -> str:
    if character == "\n":
        return "⏎"
    if character == "\t":
        return " "
    return "�" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else character


def cells(part: SamplePart) -> Iterable[tuple[str, str]]:
    """The columns of a table with their values."""
    return ((name, value_of(value)) for name, value in zip(part.names, part.values, strict=True))


def short(names: Sequence[str]) -> list[str]:
    """The heads of narrow columns."""
    return [_begin(name, 14) for name in names]
