"""What passed is run again when what it runs has changed, or when it did not pass to its end."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import remembered

ROOT = Path(__file__).parents[2]


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The files whose content counts."""
    found: list[str] = []
    monkeypatch.setattr(remembered, "_digest", lambda path: found.append(path.relative_to(ROOT).as_posix()) or "")
    monkeypatch.setattr(remembered, "_digest_of", remembered._digest_of.__wrapped__)
    return found


def test_a_test_of_the_exam_depends_on_the_programs_that_it_checks(read) -> None:
    remembered.digest_test(SimpleNamespace(path=ROOT / "exam/tests/test_idioms.py"))
    assert {"exam/idioms/maml_sine.py", "exam/idioms/author_faults.patch", "exam/patches.py"} <= set(read)
    assert {"tests/helpers/checks.py", "src/trainwright/judging/repaired.py", "constraints.txt"} <= set(read)


def test_a_check_depends_on_its_script_and_on_what_the_script_imports_and_on_no_other_script(read) -> None:
    script = next((ROOT / "tests" / "rules").rglob("bad.py"))
    item = SimpleNamespace(
        path=ROOT / "tests/checks/test_rules.py", callspec=SimpleNamespace(params={"script": script})
    )
    remembered.digest_test(item)
    assert {script.relative_to(ROOT).as_posix(), "tests/helpers/material.py", "conftest.py"} <= set(read)
    assert {Path(name).parent for name in read if name.endswith("/bad.py")} == {script.parent.relative_to(ROOT)}


def test_scripts_that_a_test_finds_by_itself_count_too(read) -> None:
    remembered.digest_test(SimpleNamespace(path=ROOT / "tests/checks/test_contract.py"))
    assert "tests/contract/severed_graph/with_torch.py" in read


def test_a_unit_test_depends_on_what_it_imports(read) -> None:
    remembered.digest_test(SimpleNamespace(path=ROOT / "tests/unit/test_constant.py"))
    assert "src/trainwright/probes/constant.py" in read
    assert "src/trainwright/judging/repaired.py" not in read


def test_what_fails_as_it_is_torn_down_has_not_passed(tmp_path: Path) -> None:
    plugin = remembered.Remembered(tmp_path / "passed.jsonl")
    plugin._now = {"good": "digest", "bad": "digest"}
    for name, passed in (("good", True), ("bad", False)):
        plugin.pytest_runtest_logreport(SimpleNamespace(when="call", passed=True, nodeid=name))
        plugin.pytest_runtest_logreport(SimpleNamespace(when="teardown", passed=passed, nodeid=name))
    again = remembered.Remembered(tmp_path / "passed.jsonl")
    assert [name.split()[-1] for name in again._before] == ["good"]
