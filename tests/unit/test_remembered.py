"""What passed is run again when what it runs has changed."""

from pathlib import Path
from types import SimpleNamespace

import remembered

ROOT = Path(__file__).parents[2]


def test_a_test_of_the_exam_depends_on_the_programs_that_it_walks(monkeypatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(remembered, "_digest", lambda path: read.append(path.relative_to(ROOT).as_posix()) or "")
    remembered.digest_test(SimpleNamespace(path=ROOT / "exam/tests/test_idioms.py"))
    assert {"exam/idioms/maml_sine.py", "exam/idioms/author_faults.patch", "exam/patches.py"} <= set(read)
    assert {"tests/helpers/walking.py", "src/trainwright/walk/plan.py", "constraints.txt"} <= set(read)
