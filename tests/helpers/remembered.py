"""Leaves out tests that passed before on the same content: pytest --remember FILE, as `make test-all` does.

The content of a test is its own file and every file of ours that its imports lead to, lazy ones too; all of the product, if
a file of the tests starts processes, and all rules where they are looked up; the folder of the script that it walks; for
tests of the exam, all of its programs; and the pinned versions.
"""

import ast
import functools
import hashlib
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = tuple(
    ROOT / f for f in ("src", "lm/src", "tests/helpers", "tests", "lm/tests/helpers", "exam", "benchmarks", ".")
)
# Words of a test's file that reaches more than it imports.
REACHES_ALL = "subprocess", "multiprocessing", "import_module", "runpy"


class Remembered:
    """Deselects tests that passed on their content, and notes those that pass now."""

    def __init__(self, passed: Path) -> None:
        self._passed = passed
        lines = passed.read_text("utf-8").splitlines() if passed.exists() else []
        self._before = dict(json.loads(line) for line in lines)
        self._now: dict[str, str] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self._now = {item.nodeid: digest_test(item) for item in items}
        known = [item for item in items if self._before.get(_key(item.nodeid)) == self._now[item.nodeid]]
        if known:
            config.hook.pytest_deselected(items=known)
            items[:] = [item for item in items if item not in set(known)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and report.nodeid in self._now:
            with self._passed.open("a", encoding="utf-8") as file:
                file.write(json.dumps([_key(report.nodeid), self._now[report.nodeid]]) + "\n")


def _key(nodeid: str) -> str:
    return f"{os.environ.get('KERAS_BACKEND')} {nodeid}"


def digest_test(item: pytest.Item) -> str:
    """The digest of all that a test runs."""
    data = (p for p in (ROOT / "src").rglob("*") if p.suffix in (".md", ".html", ".json"))
    files = {ROOT / "constraints.txt", *data, *find_reached(item.path)}
    script = item.callspec.params.get("script") if hasattr(item, "callspec") else None
    if isinstance(script, str | Path) and (path := ROOT / "tests" / script).is_file():
        files |= {p for p in path.parent.iterdir() if p.is_file()}
    if ROOT / "exam" in item.path.parents:  # they find programs by their folders
        folders = (ROOT / "exam", ROOT / "tests" / "healthy")
        files |= {p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".patch", ".json")}
    parts = sorted(f"{p.relative_to(ROOT)} {_digest(p)}" for p in files)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def find_reached(path: Path) -> frozenset[Path]:
    """The files of ours that a file's imports lead to, and the file itself."""
    found, waiting = set[Path](), [path]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        text = one.read_text("utf-8")
        waiting += [p for name in _imported(ast.parse(text)) for p in _files(name)]
        if "src" not in one.relative_to(ROOT).parts and any(word in text for word in REACHES_ALL):
            waiting += [p for source in SOURCES[:2] for p in source.rglob("*.py")]
        if "load_rules" in text:
            waiting += (ROOT / "src" / "trainwright" / "rules").rglob("*.py")
    return frozenset(found)


def _imported(tree: ast.Module) -> set[str]:
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@functools.cache
def _files(name: str) -> tuple[Path, ...]:
    """The module's file, and those of the packages around it, but for the outermost: it holds the API, which needs all."""
    parts = name.split(".")
    fewest = min(2, len(parts))
    places = [source.joinpath(*parts[:count]) for source in SOURCES for count in range(fewest, len(parts) + 1)]
    files = (f for place in places for f in (place.with_suffix(".py"), place / "__init__.py"))
    return tuple(f for f in files if f.is_file())


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
