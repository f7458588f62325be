"""No two files of tests have one name: pytest imports them by it, and refuses the second where one run collects both."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(
        path.name for folder in ("tests", "exam", "lm/tests") for path in (ROOT / folder).rglob("test_*.py")
    )
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []
