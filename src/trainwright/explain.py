"""Rule pages, the table of rules, and the search for rules by error message or word."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

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


# A longer question is treated as an error message, in which single words say little.
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
        f"{len(rules)} rules mention ", (text.strip(), "bold"), "; `trainwright explain NAME` prints a rule's page."
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
        Text(f"{rule.severity} at the {rule.stage.label} stage", style="dim"), Markdown(paragraphs(rule.page)), Text()
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


# A longer difference between a rule's bad and good script is not shown as an example.
LONGEST_EXAMPLE = 24
WIDTH = 120
_SAFETY = """## Safe, unsafe, manual

Every fix says how far you can trust it unread:

- **safe**: it is what the author surely meant. You can apply it without reading it.
- **unsafe**: it changes what is trained. Read it before you apply it.
- **manual**: only the author can decide what to write. Such a fix has no edit.
"""


def as_markdown(tests: Path) -> dict[str, str]:
    """The pages of all rules by file name: README.md with the list and the index of errors, and one page per stage.

    Args:
        tests: The folder with the rules' tests, whose bad.py and good.py serve as examples.
    """
    stages = {f"{stage.label}.md": _stage_page(stage, tests) for stage in Stage}
    return {"README.md": _contents(), **stages}


def _contents() -> str:
    made = "Generated from the rules by `scripts/rule-pages`. `trainwright explain NAME` prints a rule's page."
    lines = ["# The rules", "", made, ""]
    for stage in Stage:
        lines += [f"## {int(stage)} [{stage.label}]({stage.label}.md)", "", "| rule | severity | what is wrong |"]
        lines += ["|---|---|---|"]
        lines += [f"| {_link(r)} | {r.severity} | {r.title} |" for r in load_rules() if r.stage == stage]
        lines += [""]
    lines += [*_SAFETY.split("\n"), "## By error message", "", "`…` stands for any text within a line.", ""]
    lines += ["| error message | rules |", "|---|---|"]
    quoted: dict[str, list[Rule]] = {}
    for rule in load_rules():
        for error in _errors(rule):
            quoted.setdefault(error, []).append(rule)
    lines += [
        f"| {_code(error).replace('|', '&#124;')} | {', '.join(_link(r) for r in rules)} |"
        for error, rules in sorted(quoted.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join([*lines, ""])


def _stage_page(stage: Stage, tests: Path) -> str:
    lines = [f"# Rules of the {stage.label} stage", "", "[All rules](README.md)", ""]
    for rule in (r for r in load_rules() if r.stage == stage):
        lines += [f"## {rule.code} {rule.name}", "", _wrapped(f"*{rule.severity}*: {rule.title}."), ""]
        lines += [_body(rule), "", *_example(rule, tests)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _body(rule: Rule) -> str:
    """A rule's docstring in Markdown: headings in bold, its errors as a list, a link at the safety of its fix."""
    text = re.sub(r"^Error: `.+`\n", "", rule.page.split("\n", 1)[-1], flags=re.MULTILINE)
    text = re.sub(r"\n(?=(?:Evidence|Fix)\b)", "\n\n", text)
    text = re.sub(r"^(Why it matters|Evidence):", r"**\1:**", text, flags=re.MULTILINE)
    text = re.sub(
        r"^Fix \((safe|unsafe|manual)", r"**Fix** ([\1](README.md#safe-unsafe-manual)", text, flags=re.MULTILINE
    )
    if errors := _errors(rule):
        listed = "\n".join(f"- {_code(error)}" for error in errors)
        text = text.replace("**Fix**", f"**Error messages:**\n\n{listed}\n\n**Fix**", 1)
    parts = [part.strip() for part in re.split(r"\n{2,}", text) if part.strip()]
    return "\n\n".join(part if part.startswith("- ") else _wrapped(part) for part in parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def _errors(rule: Rule) -> list[str]:
    return re.findall(r"^Error: `(.+)`$", rule.page, re.MULTILINE)


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _link(rule: Rule) -> str:
    return f"[{rule.name}]({rule.stage.label}.md#{rule.code.lower()}-{rule.name})"


def _example(rule: Rule, tests: Path) -> list[str]:
    """The difference between the rule's bad and good test script; nothing if it is too long."""
    name = rule.name.replace("-", "_")
    folders = (tests / "rules" / rule.stage.label / name, tests / "fit" / name)
    folder = next((f for f in folders if (f / "bad.py").exists()), None)
    if folder is None:
        return []
    bad, good = (_code_of(folder / file) for file in ("bad.py", "good.py"))
    changed = [
        line
        for line in difflib.unified_diff(bad, good, lineterm="", n=1)
        if not line.startswith(("---", "+++")) and line.strip()
    ]
    shown = [" …" if line.startswith("@@") else line for line in changed][1:]
    if not 0 < len(shown) <= LONGEST_EXAMPLE:
        return []
    return ["Faulty (-) and correct (+), from the rule's test:", "", "```diff", *shown, "```", ""]


def _code_of(script: Path) -> list[str]:
    """A script's lines without its docstring and the comments for the test."""
    source = script.read_text(encoding="utf-8")
    lines = source.splitlines()
    first = ast.parse(source).body[0]
    if isinstance(first, ast.Expr):
        lines[first.lineno - 1 : first.end_lineno] = []
    kept = (re.sub(r"\s*# (?:expect|allow|slow|backends)\b.*", "", line).rstrip() for line in lines)
    return [line for line in kept if line]
