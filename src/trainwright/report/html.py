"""The report as one self-contained page."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment

from trainwright.core.report import Report, to_dict


def render(report: Report) -> str:
    """The page's text; everything from the report is escaped."""
    template = files("trainwright.report").joinpath("page.html").read_text("utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template).render(**to_dict(report))
