"""The documents that are generated from the rules."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from pathlib import Path

from trainwright.core import Rule, Stage
from trainwright.registry import load_rules
from twins import write_script

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
    lines += [*_SAFETY.split("\n"), "## By error message", ""]
    lines += ["`…` stands for any text. Messages that no rule proves are on [their own page](../errors.md).", ""]
    lines += ["| error message | rules |", "|---|---|"]
    quoted: dict[str, list[Rule]] = {}
    for rule in load_rules():
        for error in rule.quotations:
            quoted.setdefault(error, []).append(rule)
    lines += [
        f"| {_code(error).replace('|', '&#124;')} | {', '.join(_link(r) for r in rules)} |"
        for error, rules in sorted(quoted.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join([*lines, ""])


def _stage_page(stage: Stage, tests: Path) -> str:
    lines = [f"# Rules of the {stage.label} stage", "", "[All rules](README.md)", ""]
    for rule in (r for r in load_rules() if r.stage == stage):
        lines += [f"## {rule.code} {rule.name}", "", *_parts(rule, tests)]
    return "\n".join(lines).rstrip("\n") + "\n"


def rule_page(rule: Rule, tests: Path) -> str:
    """A page with one rule."""
    head = [
        f"# {rule.name}",
        "",
        f"`{rule.code}`, stage [{rule.stage.label}](README.md#{int(rule.stage)}-{rule.stage.label})",
        "",
    ]
    return "\n".join([*head, *_parts(rule, tests)]).rstrip("\n") + "\n"


def _parts(rule: Rule, tests: Path) -> list[str]:
    return [_wrapped(f"*{rule.severity}*: {rule.title}."), "", _body(rule), "", *_example(rule, tests)]


def _body(rule: Rule) -> str:
    """A rule's docstring in Markdown: headings in bold, its errors as a list, a link at the safety of its fix."""
    text = re.sub(r"^Error: `.+`\n", "", rule.page.split("\n\n", 1)[-1], flags=re.MULTILINE)
    text = re.sub(r"\n(?=(?:Evidence|Fix)\b)", "\n\n", text)
    text = re.sub(r"^(Why it matters|Evidence):", r"**\1:**", text, flags=re.MULTILINE)
    text = re.sub(
        r"^Fix \((safe|unsafe|manual)", r"**Fix** ([\1](README.md#safe-unsafe-manual)", text, flags=re.MULTILINE
    )
    if errors := rule.quotations:
        listed = "\n".join(f"- {_code(error)}" for error in errors)
        text = text.replace("**Fix**", f"**Error messages:**\n\n{listed}\n\n**Fix**", 1)
    parts = [part.strip() for part in re.split(r"\n{2,}", text) if part.strip()]
    return "\n\n".join(part if part.startswith("- ") else _wrapped(part) for part in parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


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
    source = write_script(script).read_text(encoding="utf-8")
    lines = source.splitlines()
    first = ast.parse(source).body[0]
    if isinstance(first, ast.Expr):
        lines[first.lineno - 1 : first.end_lineno] = []
    kept = (re.sub(r"\s*# (?:expect|allow|slow|backends)\b.*", "", line).rstrip() for line in lines)
    return [line for line in kept if line]
