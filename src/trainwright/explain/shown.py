"""Rules as the terminal shows them: pages, and tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from trainwright.core import Rule
from trainwright.registry import load_rules


def page(rule: Rule) -> RenderableType:
    return Group(Text(f"{rule.severity} at the {rule.stage.label} stage", style="dim"), Markdown(rule.markdown), Text())


def every_rule() -> RenderableType:
    """All rules."""
    return table(load_rules())


def table(rules: Iterable[Rule]) -> RenderableType:
    shown = Table(box=None, pad_edge=False)
    for heading in ("code", "name", "severity", "stage", "what is wrong"):
        shown.add_column(heading, no_wrap=heading != "what is wrong")
    for rule in rules:
        shown.add_row(rule.code, rule.name, str(rule.severity), rule.stage.label, rule.title)
    return shown


def titles(rules: Iterable[Rule]) -> RenderableType:
    """Rules with one line each."""
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    shown.add_column(no_wrap=True, style="bold")
    shown.add_column()
    for rule in rules:
        shown.add_row(rule.name, rule.title)
    return shown
