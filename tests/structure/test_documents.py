"""What the documents for contributors name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMES = (ROOT, ROOT / "src" / "trainwright")


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "exam/README.md"])
def test_every_path_exists(document: str) -> None:
    quoted = re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / document).read_text("utf-8"))
    assert len(quoted) > 10
    assert [path for path in quoted if not any((home / path).exists() for home in HOMES)] == []


def test_every_module_that_a_comment_names_exists() -> None:
    """`seams/source/places.py` in a docstring or comment of the sources."""
    package = ROOT / "src" / "trainwright"
    gone = [
        f"{path.relative_to(package)}: {named}"
        for path in package.rglob("*.py")
        for named in re.findall(
            r"(?<![\w/])((?:adapters|seams|tensors|probes|stages|walk|lm)/[\w/]+\.py)", path.read_text("utf-8")
        )
        if not (package / named).exists()
    ]
    assert gone == []
