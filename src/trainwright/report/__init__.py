"""Renderers: they read a Report and decide nothing."""

from __future__ import annotations

from trainwright.core import Report
from trainwright.core.report import shown_as


def _as_html(report: Report) -> str:
    from trainwright.report import html

    return html.fragment(report)


def _as_text(report: Report) -> str:
    from trainwright.report import words

    return words.short(report)


shown_as |= {"html": _as_html, "text": _as_text}
