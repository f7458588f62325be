"""What a model is told of a check: compact JSON of a bounded size; what is least telling is cut first, and named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trainwright.core import Finding, Report, Status
from trainwright.core.sample import MASKED, PADDING, Sample
from trainwright.core.sheet import Curve, Sheet
from trainwright.report import samples, words
from trainwright.report import sheet as sheet_words
from trainwright.report.curves import BLOCKS

# Tokens, counted as of a tokenizer that is worse than those in use: parts of words and numbers, and each other sign.
MOST_TOKENS = 3_000
_TOKEN = re.compile(r"[A-Za-z]{1,5}|\d{1,3}| (?=\d)|[^\sA-Za-z\d]")
# All marked lines of the sheet are told, and so many others; points of a curve, about, and numbers of a row.
_UNMARKED, _POINTS, _NUMBERS = 8, 12, 64


class Checked(NamedTuple):
    """A check that was made, with or without a patch."""

    id: str
    command: tuple[str, ...]
    patch: str
    report: Report
    shows_rows: bool


def write(answer: Mapping[str, str | list[str]], least: Sequence[str] = ()) -> str:
    """The answer as JSON without empty parts; parts are cut by halves until it fits, those named in `least` first."""
    told = {name: part for name, part in answer.items() if part}
    for name in [*least, *told]:
        while name in told and _size(told) > MOST_TOKENS and _size(told[name]) > 50:
            told["cut"] = list(dict.fromkeys([*told.get("cut", ()), name]))
            told[name] = _halve(told[name])
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _size(value: object) -> int:
    text = json.dumps(value, ensure_ascii=False)
    return len(_TOKEN.findall(text)) + sum(not one.isascii() for one in text)


def _halve(part: str | list[str]) -> str | list[str]:
    if isinstance(part, str):
        return f"{part[: len(part) // 2]}…"
    return part[: len(part) // 2] if len(part) > 1 else [f"{part[0][: len(part[0]) // 2]}…"]


def tell_check(checked: Checked, before: Checked | None) -> str:
    """The verdict, the first cause in full, the rest in a line each, and how a check before the patch differs."""
    report, first, sheet = checked.report, checked.report.first_cause, checked.report.sheet
    was, now = ({one.name for one in each.report.findings} if each else set() for each in (before, checked))
    remarks = [words.redirected(report), words.kept_away(report), report.message, *report.internal_errors]
    answer: dict[str, str | list[str]] = {
        "id": checked.id,
        "script": f"{report.script}{' with the patch' if checked.patch else ''}",
        "verdict": words.ruled(report),
        "before": f"{before.id}, without the patch: {words.ruled(before.report)}" if before else "",
        "no_longer_found": sorted(was - now),
        "first_cause": _tell_finding(first) if first else "",
        **({name: getattr(words, name)(first) for name in ("measured", "proof", "warned", "tried")} if first else {}),
        "diff": first.fix.diff or "" if first and first.fix else "",
        "raised": f"{words.raised(report.failure)}\n{words.unexplained(report)}" if report.failure else "",
        "more_findings": [_tell_finding(one) for one in report.findings if one is not first],
        "run": f"{sheet_words.outline(sheet)}. {sheet_words.end(sheet)}".rstrip(". ") if sheet else "",
        "seen": _tell_seen(sheet) if sheet else [],
        "skipped": [f"{row.label}: {row.why}" for row in words.rows(report.stages) if row.status == Status.SKIPPED],
        "remarks": [text for text in remarks if text],
        "next": _propose(checked.id, report),
    }
    return write(answer, ("seen", "remarks", "skipped", "more_findings", "raised"))


def _tell_finding(one: Finding) -> str:
    after = f", seen with {' and '.join(one.after_repair)} fixed in memory" if one.after_repair else ""
    at, fix = f"{one.where}: " if one.where else "", f". Fix: {one.fix.does}" if one.fix else ""
    return f"{one.code} {one.name} ({one.severity}{after}) {at}{one.message}{fix}"


def _tell_seen(sheet: Sheet) -> list[str]:
    """The sheet's lines, those that are marked first, without rows and what is drawn in blocks."""
    told: tuple[list[str], list[str]] = [], []
    for title, lines in sheet_words.brief(sheet).items():
        for line in lines if title != "samples" else ():
            cells = [cell for cell in line.cells if cell.strip(f"{BLOCKS}░! ")]
            told[not line.mark].append(f"{title}: {'; '.join(cells)}{line.mark and f' ← {line.mark}'}")
    return [*told[0], *told[1][:_UNMARKED]]


def _propose(number: str, report: Report) -> list[str]:
    first, sheet = report.first_cause, report.sheet or Sheet(updates=0)
    told = ["check(script, patch) with a cure, before it is written", f"explain('{first.name}')"] if first else []
    told += [f"rows('{number}', wrong=true)"] if any(one.right is False for one in sheet.samples) else []
    told += ["check with a greater budget: the run was cut short"] if sheet.cut_at is not None else []
    return [*told, f"sheet('{number}')"]


def tell_sheet(checked: Checked, name: str) -> str:
    """All tables, cut to fit; or one of them."""
    sheet = checked.report.sheet or Sheet(updates=0)
    tables: dict[str, str | list[str]] = {"Curves": [*map(_tell_curve, sheet.curves)]}
    for page in sheet_words.tables(sheet):
        rows = [" | ".join(line.cells) + (line.mark and f" ← {line.mark}") for line in page.lines]
        marked_first = sorted(rows, key=lambda row: "←" not in row)
        tables[page.title] = [" | ".join(page.head), *marked_first, *filter(None, [page.more])]
    chosen = {title: table for title, table in tables.items() if name.lower() in title.lower()}
    chosen = chosen or {"no_such_table": f"{name}; there are {', '.join(title for title in tables if tables[title])}"}
    return write({"id": checked.id, "run": sheet_words.outline(sheet), **chosen}, ("Weights", "Inputs", *chosen))


def _tell_curve(curve: Curve) -> str:
    points = [f"{at}:{words.value_of(value)}" for at, value in zip(curve.updates, curve.values)]
    return " ".join([f"{curve.name}:", *points[: -1 : len(points) // _POINTS + 1], points[-1], curve.mark]).strip()


def tell_rows(checked: Checked, of: str, wrong: bool, start: int) -> str:
    """As many rows as fit, and where the next ones begin."""
    sheet = checked.report.sheet or Sheet(updates=0)
    rows = [_tell_row(one) for one in sheet.samples if of in ("", one.rows_of) and (one.right is False or not wrong)]
    end = start + 1
    while end < len(rows) and _size(rows[start : end + 1]) < MOST_TOKENS - 300:
        end += 1
    why_not = "no such row was kept" if checked.shows_rows else "samples = false in pyproject.toml, or --no-samples"
    answer: dict[str, str | list[str]] = {
        "id": checked.id,
        "not_shown": why_not if not rows else "",
        "all": samples.same_answer(sheet),
        "rows": rows[start:end],
        "generated": [f"{one.prompt} → {one.text}; in the row: {one.expected}" for one in sheet.generated],
        "next": f"{len(rows) - end} more from start={end}" if end < len(rows) else "",
    }
    return write(answer, ("generated", "rows"))


def _tell_row(one: Sample) -> str:
    """In it, what the loss does not count stands in brackets; padding is left out."""
    which = f"{one.rows_of} {samples.head(one)} {one.output}".strip()
    told = f"{which}: {samples.outcome(one)} {samples.verdict(one)}"
    for part in one.inputs:
        shown = [f"⟨{of.text}⟩" if of.kind == MASKED else of.text for of in part.spans if of.kind != PADDING]
        shown += [f"{name}={value} " for name, value in samples.cells(part)]
        shown += [f"{words.value_of(value)} " for line in part.lines for value in line][:_NUMBERS]
        told += f" | {part.name or part.form} {f'({part.note})' if part.note else ''}: {''.join(shown)}"
    return told
