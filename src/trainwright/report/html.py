"""The report as one self-contained page."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment

from trainwright.core.report import Report
from trainwright.report import words
from trainwright.report.source import excerpt


def render(report: Report) -> str:
    """The page's text; everything from the report is escaped."""
    template = files("trainwright.report").joinpath("page.html").read_text("utf-8")
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template)
    first = report.first_cause
    rest = [f for f in report.findings if f is not first]
    return page.render(report=report, first=first, rest=rest, words=words, excerpt=excerpt) + "\n"
