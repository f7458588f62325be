"""A rule's page, the table of rules, and which rules know an error message."""

from __future__ import annotations

import re

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from trainwright.core.rule import Rule, load_rules
from trainwright.core.stage import Stage


def find(name: str) -> Rule | None:
    """The rule of this name or code."""
    wanted = name.strip().lower()
    return next((r for r in load_rules() if wanted in (r.name, r.code.lower())), None)


def knowing(text: str) -> list[Rule]:
    """Rules whose page quotes a part of this error text; what a page quotes stands in backticks after "Error:".

    In a quotation `…` stands for anything within a line.
    """
    found = []
    for rule in load_rules():
        for quoted in re.findall(r"Error: `([^`]+)`", " ".join(rule.page.split())):
            pattern = ".*?".join(re.escape(part) for part in quoted.split("…"))
            if re.search(pattern, " ".join(text.split())):
                found.append(rule)
                break
    return found


def explain(text: str) -> tuple[bool, RenderableType]:
    """Whether anything was found, and what to show."""
    one = find(text)
    rules = [one] if one else knowing(text)
    if rules:
        return True, Group(*(_page(r) for r in rules))
    return False, Text(
        "No rule is called that and none quotes that error. `trainwright rules` lists them; "
        "`trainwright check SCRIPT` looks for the cause itself."
    )


def _page(rule: Rule) -> RenderableType:
    return Group(
        Text(f"{rule.severity} at the {rule.stage.label} stage", style="dim"),
        Markdown(paragraphs(rule.page)),
        Text(),
    )


def paragraphs(page: str) -> str:
    """A page in Markdown: each of its parts a paragraph of its own."""
    return re.sub(r"\n(?=(Why it matters|Evidence|Error|Fix)\b)", "\n\n", page).replace("\n\n\n", "\n\n")


def table() -> RenderableType:
    """All rules."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("code", "name", "severity", "stage", "what is wrong"):
        shown.add_column(heading, no_wrap=heading != "what is wrong")
    for rule in load_rules():
        shown.add_row(rule.code, rule.name, str(rule.severity), rule.stage.label, rule.title)
    return shown


def as_markdown() -> str:
    """The pages of all rules, for the documentation."""
    parts = [
        "# The rules",
        "",
        "Made from the rules by `scripts/rule-pages`; `trainwright explain NAME` prints one.",
        "",
    ]
    for stage in Stage:
        parts += [f"## {int(stage)} {stage.label}", ""]
        for rule in (r for r in load_rules() if r.stage == stage):
            body = paragraphs(rule.page).split("\n", 1)[-1].strip()
            parts += [f"### {rule.code} {rule.name}", "", f"*{rule.severity}*: {rule.title}.", "", body, ""]
    return "\n".join(parts)
