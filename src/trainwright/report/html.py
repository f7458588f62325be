"""The report as a self-contained HTML page, or as the fragment that a notebook shows below a cell."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from trainwright.core import Report
from trainwright.core.sheet import Sheet
from trainwright.report import curves, words
from trainwright.report import samples as sample_words
from trainwright.report import sheet as sheet_words
from trainwright.report.next_step import next_step
from trainwright.report.source import excerpt


def render(report: Report) -> str:
    """The page's text; everything from the report is escaped."""
    page = _environment().from_string(_text("page.html"))
    return page.render(report=report, style=Markup(_text("style.css")), content=Markup(_content(report))) + "\n"


def fragment(report: Report) -> str:
    """The report as a fragment: no head, no script, and its style inside its own element."""
    return f'<div class="trainwright">\n<style>\n{_text("style.css")}</style>\n{_content(report)}</div>\n'


def _content(report: Report) -> str:
    first = report.first_cause
    rest = [f for f in report.findings if f is not first]
    content = _environment().from_string(_text("content.html"))
    sheet = Markup(_sheet(report.sheet) if report.sheet is not None else "")
    parts = {"first": first, "rest": rest, "sheet": sheet, "next_step": next_step(report)}
    return content.render(report=report, words=words, excerpt=excerpt, **parts) + "\n"


def _sheet(sheet: Sheet) -> str:
    moments = [(sheet.best_update, "best"), (sheet.kept_update, "kept"), (sheet.cut_at, "cut")]
    seen = [(update, kind) for update, kind in moments if update is not None]
    template = _environment().from_string(_text("sheet.html"))
    return template.render(sheet=sheet, words=sheet_words, curves=curves, moments=seen, look=Markup(_rows(sheet)))


def _rows(sheet: Sheet) -> str:
    """Confusions and single rows."""
    if not sheet.samples and not sheet.confused and not sheet.generated:
        return ""
    look = _environment().from_string(_text("samples.html"))
    return look.render(sheet=sheet, words=sample_words, curves=curves)


def _environment() -> Environment:
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _text(name: str) -> str:
    return files("trainwright.report").joinpath(name).read_text("utf-8")
