"""What the documentation site has besides docs/: the README as its first page, the changelog, and a page for each rule (a hook of MkDocs)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Links of a page of a stage, which lead to what is a page of its own here.
_TO_STAGE = re.compile(r"\]\((\w+)\.md#tw\d+-([\w-]+)\)")
# Links to files that the site does not have lose their target.
_INTO_DOCS, _ELSEWHERE = re.compile(r"\]\(docs/"), re.compile(r"\[([^\]]+)\]\((?!https?:|#)(?!docs/|CHANGELOG)[^)]+\)")
_CODE = re.compile(r"\[([^\]]+)\]\(\.\./recipes/[^)]*\)")
_MESSAGES = Path("src", "trainwright", "frameworks", "messages")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of other files."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "helpers"), str(ROOT)]
    from rule_pages import rule_page
    from trainwright.registry import load_rules

    readme = _ELSEWHERE.sub(r"\1", (ROOT / "README.md").read_text("utf-8"))
    made = {"index.md": _INTO_DOCS.sub("](", readme).replace("](CHANGELOG.md", "](changelog.md")}
    made["changelog.md"] = _INTO_DOCS.sub("](", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    made |= {f"rules/{rule.name}.md": rule_page(rule, ROOT / "tests") for rule in load_rules()}
    made |= {f"errors/{file.name}": file.read_text("utf-8") for file in sorted((ROOT / _MESSAGES).glob("*.md"))}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **more: Any) -> str:
    """Let links to rules and to messages lead to their pages here."""
    if page.file.src_uri == "rules/README.md":
        return _TO_STAGE.sub(r"](\2.md)", markdown)
    return _CODE.sub(r"\1", markdown.replace(f"](../{_MESSAGES.as_posix()}/", "](errors/"))
