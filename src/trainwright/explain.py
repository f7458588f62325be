"""Rule pages, the table of rules, and the search for rules by error message or word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from trainwright.core.rule import Rule, knowing, load_rules
from trainwright.core.stage import Stage


def find(name: str) -> Rule | None:
    """The rule of this name or code."""
    wanted = name.strip().lower()
    return next((r for r in load_rules() if wanted in (r.name, r.code.lower())), None)


# A longer question is taken for an error message, whose single words say little.
MOST_WORDS = 4
# The score of a word in a rule's name, title or page; a second mention in the page counts again, a third does not.
IN_NAME, IN_TITLE, IN_PAGE = 8, 4, 1


def mentioning(text: str) -> list[Rule]:
    """Rules that mention every word of a question; rules with the words in their names come first."""
    words = re.findall(r"\w+", text.lower())
    if not 0 < len(words) <= MOST_WORDS:
        return []
    patterns = [re.compile(rf"\b{re.escape(re.sub('(?<!s)s$', '', word))}") for word in words]
    scores = {rule.code: [_score(rule, pattern) for pattern in patterns] for rule in load_rules()}
    found = [rule for rule in load_rules() if all(scores[rule.code])]
    return sorted(found, key=lambda rule: -sum(scores[rule.code]))


def _score(rule: Rule, pattern: re.Pattern[str]) -> int:
    named = pattern.search(f"{rule.code} {rule.name}".lower()) is not None
    titled = pattern.search(rule.title.lower()) is not None
    mentions = len(pattern.findall(rule.page.lower()))
    return IN_NAME * named + IN_TITLE * titled + IN_PAGE * min(mentions, 2)


def near(text: str) -> list[str]:
    """Names of rules with a similar spelling."""
    wanted = "-".join(re.findall(r"\w+", text.lower()))
    return difflib.get_close_matches(wanted, [r.name for r in load_rules()], cutoff=0.7)


def explain(text: str) -> tuple[bool, RenderableType]:
    """Whether anything was found, and what to show."""
    one = find(text)
    rules = [one] if one else knowing(text)
    if not rules and len(mentions := mentioning(text)) != 1:
        return bool(mentions), _listed(text, mentions) if mentions else _unknown(text)
    return True, Group(*(_page(r) for r in rules or mentions))


def _listed(text: str, rules: list[Rule]) -> RenderableType:
    head = Text.assemble(
        f"{len(rules)} rules mention ",
        (text.strip(), "bold"),
        "; `trainwright explain NAME` prints a rule's page.",
    )
    return Group(head, Text(), _table(rules))


def _unknown(text: str) -> Text:
    alike = near(text)
    meant = f" Did you mean {', '.join(alike)}?" if alike else ""
    return Text(
        f"No rule has this name, mentions it or quotes it as an error.{meant} `trainwright rules` lists all rules; "
        "`trainwright check SCRIPT` searches for the cause."
    )


def _page(rule: Rule) -> RenderableType:
    return Group(
        Text(f"{rule.severity} at the {rule.stage.label} stage", style="dim"),
        Markdown(paragraphs(rule.page)),
        Text(),
    )


def paragraphs(page: str) -> str:
    """A page as Markdown, with each part as a separate paragraph."""
    return re.sub(r"\n(?=(Why it matters|Evidence|Error|Fix)\b)", "\n\n", page).replace("\n\n\n", "\n\n")


def table() -> RenderableType:
    """All rules."""
    return _table(load_rules())


def _table(rules: Iterable[Rule]) -> RenderableType:
    shown = Table(box=None, pad_edge=False)
    for heading in ("code", "name", "severity", "stage", "what is wrong"):
        shown.add_column(heading, no_wrap=heading != "what is wrong")
    for rule in rules:
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
