"""Leaves out tests that passed before on the same content: pytest --remember FILE, as `make test-all` does.

The content of a test is its own file, and every file of ours that its imports lead to, lazy ones too; all of the product,
if its file or a helper starts processes or checks scripts; the folder of the script that it is given, or, where it finds
files by its own place, every file of the tests, the exam, the examples and the documents; and what all tests share.
"""

import ast
import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src", ROOT / "lm" / "src"
HELPERS = ROOT / "tests" / "helpers", ROOT / "lm" / "tests" / "helpers"
FOUND = tuple(ROOT / folder for folder in ("tests", "lm/tests", "exam", "examples", "docs", "benchmarks", "scripts"))
SOURCES = (*PRODUCT, *HELPERS, ROOT / "tests", ROOT / "exam", ROOT / "benchmarks", ROOT)
SHARED = ("conftest.py", "pyproject.toml", "constraints.txt", "constraints-legacy.txt", "lm/tests/conftest.py")
# Words of a test's file, or a helper's, that reaches more of the product than it imports.
REACHES_ALL = "subprocess", "multiprocessing", "import_module", "runpy", "check_script", "load_rules"


class Remembered:
    """Deselects tests that passed on their content, and notes those that pass now."""

    def __init__(self, passed: Path) -> None:
        self._passed = passed
        lines = passed.read_text("utf-8").splitlines() if passed.exists() else []
        self._before = dict(json.loads(line) for line in lines if line.endswith("]"))
        self._now: dict[str, str] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(trylast=True)  # of what `-k` and `-m` choose
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self._now = {item.nodeid: digest_test(item) for item in items}
        known = {item for item in items if self._before.get(_key(item.nodeid)) == self._now[item.nodeid]}
        if known:
            config.hook.pytest_deselected(items=list(known))
            items[:] = [item for item in items if item not in known]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid not in self._failed:
            with self._passed.open("a", encoding="utf-8") as file:
                file.write(json.dumps([_key(report.nodeid), self._now[report.nodeid]]) + "\n")


def _key(nodeid: str) -> str:
    return f"{os.environ.get('KERAS_BACKEND')} {nodeid}"


def digest_test(item: pytest.Item) -> str:
    """The digest of all that a test runs."""
    script = item.callspec.params.get("script") if hasattr(item, "callspec") else None
    path = ROOT / "tests" / script if isinstance(script, str | Path) else None
    return _digest_of(item.path, path.parent if path is not None and path.parent.is_dir() and path.suffix else None)


@functools.cache
def _digest_of(test: Path, folder: Path | None) -> str:
    files = {*find_reached(test), *_list_shared()}
    if folder is not None:
        files |= {p for place in (folder, *HELPERS) for p in _list_files(place)}
    elif "__file__" in test.read_text("utf-8"):
        files |= {p for place in FOUND for p in _list_files(place)} | set(ROOT.glob("*.md"))
    lines = sorted(f"{p.relative_to(ROOT)} {_digest(p)}" for p in files)
    return hashlib.sha256("\n".join([sys.version, *lines]).encode()).hexdigest()


@functools.cache
def _list_shared() -> frozenset[Path]:
    """What all tests share: settings, pinned versions, and the product's files that are no code."""
    data = (p for source in PRODUCT for p in _list_files(source) if p.suffix != ".py")
    return frozenset({*(ROOT / name for name in SHARED), *data})


@functools.cache
def _list_files(folder: Path) -> tuple[Path, ...]:
    return tuple(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


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
        ours = any(source in one.parents for source in PRODUCT)
        if not ours and any(word in text for word in REACHES_ALL):
            waiting += [p for source in PRODUCT for p in source.rglob("*.py")]
        elif ours and "load_rules" in text:
            folders = (PRODUCT[0] / name for name in ("rules", "review/questions"))
            waiting += (p for folder in folders for p in folder.rglob("*.py"))
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
def _files(name: str) -> Iterable[Path]:
    """The module's file, and those of the packages around it, but for the outermost: it holds the API, which needs all."""
    parts = name.split(".")
    fewest = min(2, len(parts))
    places = [source.joinpath(*parts[:count]) for source in SOURCES for count in range(fewest, len(parts) + 1)]
    files = (f for place in places for f in (place.with_suffix(".py"), place / "__init__.py"))
    return tuple(f for f in files if f.is_file())


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
