"""The report as a self-contained HTML page, or as the fragment that a notebook shows below a cell."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from trainwright.core.report import Report
from trainwright.report import words
from trainwright.report.source import excerpt


def render(report: Report) -> str:
    """The page's text; everything from the report is escaped."""
    page = _environment().from_string(_text("page.html"))
    return page.render(report=report, style=Markup(_text("style.css")), content=Markup(_content(report))) + "\n"


def fragment(report: Report) -> str:
    """The report as a fragment: no head, no script, and its style inside its own element."""
    return f'<div class="trainwright">\n<style>\n{_text("style.css")}</style>\n{_content(report)}</div>\n'


def _content(report: Report) -> str:
    if not report.trainings:
        return _one_training(report)
    overview = _environment().from_string(_text("trainings.html")).render(trainings=report.trainings, words=words)
    return "\n".join([overview, *map(_one_training, report.trainings)])


def _one_training(report: Report) -> str:
    first = report.first_cause
    rest = [f for f in report.findings if f is not first]
    content = _environment().from_string(_text("content.html"))
    return content.render(report=report, first=first, rest=rest, words=words, excerpt=excerpt) + "\n"


def _environment() -> Environment:
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _text(name: str) -> str:
    return files("trainwright.report").joinpath(name).read_text("utf-8")
