"""`trainwright check` as users run it, check and rehearsal together: the announced rule is the first cause, and sound scripts have none.

The other tests of checks leave the rehearsal out (`conftest.py`). A finding may stand in a rule's place where exam/covers.json
lists it among the rule's successors.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from checks import expected
from exam.programs import ENVIRONMENT, ROOT
from forked_runs import Runs
from twins import write_script

FOLDER = Path(__file__).parents[1]
RULES = sorted({script.parent for script in FOLDER.glob("rules/*/*/bad.py")})
KINDS = ("torch", "trainer", "accelerate", "lightning")
CONTRACT = sorted(s for kind in KINDS for s in FOLDER.glob(f"contract/*/with_{kind}.py"))
# One of each kind of training and of each kind of fault goes before every commit; a script takes some 10 s of a processor.
QUICK = (
    "severed_graph/with_torch",
    "non_finite_data/with_trainer",
    "ragged_batch/with_accelerate",
    "misaligned_labels/with_lightning",
)
SUCCESSORS = json.loads((ROOT / "exam" / "covers.json").read_text("utf-8"))["successors"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with Runs(ENVIRONMENT) as runs:
        yield runs


def check(runs: Runs, script: Path, folder: Path) -> dict[str, Any]:
    """The report of the script's first training."""
    status, printed = runs.run(
        "-m", "trainwright", "check", "--json", "report.json", str(script), folder=folder, variables={}
    )
    assert status in (0, 1), printed
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["stages"][-1]["stage"] == "rehearsal", report["stages"]
    return report


def names_the_fault(report: dict[str, Any], script: Path) -> None:
    name, line = expected(script)
    notes = [f for f in report["findings"] if f["name"] == name]
    first = report["first_cause"] or next(iter(notes), None)
    found = [(f["name"], f["severity"], (f["where"] or {}).get("line")) for f in report["findings"]]
    assert first is not None and first["name"] in (name, *SUCCESSORS.get(name, ())), (name, line, found)
    if first["name"] == name:
        assert first["where"]["line"] == line, found


def _marked(script: Path) -> Any:
    name = f"{script.parent.name}/{script.stem}"
    lacks = script.stem == "with_lightning" and find_spec("lightning") is None
    slow = () if name in QUICK else (pytest.mark.slow,)
    return pytest.param(script, id=name, marks=(*slow, pytest.mark.skipif(lacks, reason="lightning is not installed")))


@pytest.mark.parametrize("script", [_marked(script) for script in CONTRACT])
def test_a_fault_of_the_contract_is_the_first_cause(script: Path, runs: Runs, tmp_path: Path) -> None:
    names_the_fault(check(runs, script, tmp_path), script)


@pytest.mark.slow
@pytest.mark.parametrize("folder", RULES, ids=lambda folder: folder.name)
def test_the_bad_script_of_a_rule_has_it_as_its_first_cause(folder: Path, runs: Runs, tmp_path: Path) -> None:
    names_the_fault(check(runs, folder / "bad.py", tmp_path), folder / "bad.py")


@pytest.mark.slow
@pytest.mark.parametrize("folder", RULES, ids=lambda folder: folder.name)
def test_the_good_script_of_a_rule_has_no_finding_above_a_note(folder: Path, runs: Runs, tmp_path: Path) -> None:
    report = check(runs, write_script(folder / "good.py"), tmp_path)
    loud = [(f["name"], (f["where"] or {}).get("line")) for f in report["findings"] if f["severity"] != "note"]
    assert not loud and report["failure"] is None
