"""Tests run on one thread, in process, with errors of our own let out."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS), str(TESTS.parent / "benchmarks")]
import conditions  # noqa: E402, F401


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="store the rendered reports in tests/golden anew")


def pytest_collection_modifyitems(items):
    """A script with the comment `# slow` is walked by `make test-slow` alone."""
    for item in items:
        script = item.callspec.params.get("script") if hasattr(item, "callspec") else None
        path = TESTS / script if isinstance(script, str | Path) else None
        if path is not None and path.is_file() and "# slow" in path.read_text(encoding="utf-8"):
            item.add_marker("slow")
