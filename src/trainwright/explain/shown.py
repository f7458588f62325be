"""Rules as the terminal shows them: pages, and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from trainwright.core import Rule
from trainwright.registry import load_rules

HEADINGS = ("code", "name", "severity", "stage", "what is wrong")


def page(rule: Rule) -> RenderableType:
    return Group(Text(f"{rule.severity} at the {rule.stage.label} stage", style="dim"), Markdown(rule.markdown), Text())


def every_rule() -> RenderableType:
    """All rules."""
    return table(load_rules())


def every_rule_as_json() -> str:
    """All rules as a list in JSON; a page is named by its path in the repository."""
    keys = (*HEADINGS[:-1], "title", "page")
    pages = {rule: f"docs/rules/{rule.stage.label}.md#{rule.code.lower()}-{rule.name}" for rule in load_rules()}
    rows = [dict(zip(keys, (*_cells(rule), page), strict=True)) for rule, page in pages.items()]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def table(rules: Iterable[Rule]) -> RenderableType:
    shown = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        shown.add_column(heading, no_wrap=heading != HEADINGS[-1])
    for rule in rules:
        shown.add_row(*_cells(rule))
    return shown


def _cells(rule: Rule) -> tuple[str, ...]:
    return rule.code, rule.name, str(rule.severity), rule.stage.label, rule.title


def titles(rules: Iterable[Rule]) -> RenderableType:
    """Rules with one line each."""
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    shown.add_column(no_wrap=True, style="bold")
    shown.add_column()
    for rule in rules:
        shown.add_row(rule.name, rule.title)
    return shown
