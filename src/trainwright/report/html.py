"""The report as a self-contained HTML page, or as the fragment that a notebook shows below a cell."""

from __future__ import annotations

import functools
import itertools
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, Template, pass_context
from markupsafe import Markup

from trainwright.core import Report
from trainwright.report import charts, curves, words
from trainwright.report import samples as sample_words
from trainwright.report import sheet as sheet_words
from trainwright.report.lengths import LENGTHS, MOST_BYTES, begin_of, shorten
from trainwright.report.source import excerpt


def render(report: Report) -> str:
    """The page's text; everything from the report is escaped."""
    verdict = words.verdict(report.verdict) if report.verdict is not None else "trainwright"
    parts = {"style": Markup(_text("style.css")), "content": Markup(_with_contents(_content(report)))}
    return _fill("page.html", LENGTHS[-1][0], report=report, verdict=verdict, **parts)


def fragment(report: Report) -> str:
    """The report as a fragment: no head, no script, no ids, and its style inside its own element."""
    return f'<div class="trainwright">\n<style>\n{_text("style.css")}</style>\n{_content(report)}</div>\n'


def _content(report: Report) -> str:
    """The parts of a page: all of them where they are small enough, otherwise the beginning of each."""
    room = MOST_BYTES - len(_text("style.css").encode()) - 5_000  # the page's head, and its list of parts
    for lengths in LENGTHS:
        content = _parts(report, *lengths)
        if len(content.encode("utf-8", "replace")) < room:
            break
    return content


def _parts(report: Report, most: int, most_rows: int) -> str:
    shown, cut = shorten(report, most, most_rows)
    first, sheet = report.first_cause, shown.sheet
    parts = {"charts": "", "rows": "", "sheet": ""}
    if sheet is not None:
        drawn, bars = charts.charts(sheet), charts.bars(sheet)
        numbers = {"short": words.value_of, "number": words.number}
        parts = {
            "charts": _fill("charts.html", most, drawn=drawn, bars=bars, charts=charts, **numbers),
            "rows": _fill("samples.html", most, sheet=sheet, words=sample_words, curves=curves),
            "sheet": _fill("sheet.html", most, sheet=sheet, words=sheet_words, tables=sheet_words.tables(sheet, most)),
        }
    rest = [f for f in shown.findings if f is not first]
    given = {"first": first, "rest": rest, "cut": cut, **{name: Markup(text) for name, text in parts.items()}}
    return _fill("content.html", most, report=shown, words=words, excerpt=excerpt, seen=sheet, **given)


def _with_contents(content: str) -> str:
    """The page with a list of its parts, each of which is led to."""
    titles = re.findall("<h2>(.*?)</h2>", content)  # ours alone: those of a report are escaped
    links = "".join(f'<a href="#part-{number}">{title}</a>\n' for number, title in enumerate(titles))
    numbers = itertools.count()
    content = re.sub("<h2>", lambda _: f'<h2 id="part-{next(numbers)}">', content)
    listed = f'\n<nav aria-label="Parts of this report">{links}</nav>' if links else ""
    return content.replace("</header>", f"</header>{listed}")


def _fill(template: str, most: int, **given: Any) -> str:
    """A template's text, without what is beyond the greatest length of a text."""
    return _template(template).render(**given, most=most) + "\n"


@functools.cache
def _template(name: str) -> Template:
    shortens = pass_context(lambda context, value: begin_of(value, context["most"]))
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=shortens).from_string(
        _text(name)
    )


def _text(name: str) -> str:
    return files("trainwright.report").joinpath(name).read_text("utf-8")
