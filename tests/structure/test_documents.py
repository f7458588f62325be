"""What the documents for contributors name is there."""

import re
from pathlib import Path

import pytest

from trainwright.registry import load_rules

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "src" / "trainwright", ROOT / "lm" / "src" / "trainwright_lm")
HOMES = (ROOT, *PACKAGES)


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "exam/README.md"])
def test_every_path_exists(document: str) -> None:
    quoted = re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / document).read_text("utf-8"))
    assert len(quoted) > 10
    assert [path for path in quoted if not any((home / path).exists() for home in HOMES)] == []


def test_no_rule_has_the_code_of_one_that_is_gone() -> None:
    (told,) = re.findall(r"are gone stay unused: TW([\d, \n]+)\.", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    gone = {f"TW{code}" for code in re.findall(r"\d+", told)}
    assert len(gone) > 40
    assert [one.code for one in load_rules() if one.code in gone] == []


def test_every_module_that_a_comment_names_exists() -> None:
    """`seams/source/places.py` in a docstring or comment of the sources."""
    gone = [
        f"{path.relative_to(ROOT)}: {named}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        for named in re.findall(
            r"(?<![\w/])((?:adapters|seams|tensors|probes|stages|look|rehearsal|review|rules|core|judging|report|fixes)/[\w/]+\.py)",
            path.read_text("utf-8"),
        )
        if not (PACKAGES[0] / named).exists()
    ]
    assert gone == []


def test_the_page_of_error_messages_links_to_each_file_by_its_title() -> None:
    page = ROOT / "docs" / "errors.md"
    links = re.findall(r"^- \[(.+)\]\((.+)\)$", page.read_text("utf-8"), re.MULTILINE)
    files = (ROOT / "src" / "trainwright" / "frameworks" / "messages").glob("*.md")
    titles = {file: file.read_text("utf-8").split("\n")[0] for file in files}
    assert {(page.parent / link).resolve(): f"# {title}" for title, link in links} == titles
