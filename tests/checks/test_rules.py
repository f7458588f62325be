"""Every rule names its own bad script first, at the announced line, and no rule speaks on the good one."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks import check_script, expected, said, shorten_run
from rule_pages import as_markdown
from trainwright import rules
from trainwright.core import Report, Severity, Stage
from trainwright.registry import load_rules
from twins import find_scripts

INSTALLED = importlib.util.find_spec("lightning") is not None
FOLDER = Path(__file__).parents[1] / "rules"
BAD = sorted(s for s in find_scripts(FOLDER, "*/*/bad*.py") if INSTALLED or "lightning" not in s.stem)
GOOD = sorted(s for s in find_scripts(FOLDER, "*/*/good*.py") if INSTALLED or "lightning" not in s.stem)


def _name_scripts(scripts: list[Path]) -> list[Any]:
    """Each with its rule; all but the first pair of a rule are slow."""
    return [
        pytest.param(s, id="/".join(s.parts[-3:]), marks=() if s.stem in ("bad", "good") else pytest.mark.slow)
        for s in scripts
    ]


@pytest.mark.parametrize("script", _name_scripts(BAD))
def test_the_bad_script_has_this_fault_as_its_first_cause(script: Path) -> None:
    """The run ends early, but for a fault that only its end shows."""
    options = shorten_run(script.parent.name.replace("_", "-"))
    _names_the_fault(script, check_script(script, repair=not options, **options))


@pytest.mark.slow
@pytest.mark.parametrize("script", _name_scripts(BAD))
def test_the_fault_is_the_first_cause_where_it_is_mended_in_further_runs(script: Path) -> None:
    budget = 180 if "# slow" in script.read_text(encoding="utf-8") else 60
    _names_the_fault(script, check_script(script, budget=budget))


def _names_the_fault(script: Path, report: Report) -> None:
    name, line = expected(script)
    assert name == script.parent.name.replace("_", "-")
    notes = [f for f in report.findings if f.name == name and f.severity == Severity.NOTE]
    of_rules = replace(report, findings=tuple(f for f in report.findings if f.stage != Stage.REHEARSAL))
    first = of_rules.first_cause or next(iter(notes), None)
    assert first is not None, said(report)
    assert first.name == name, said(report)
    assert first.where is not None and first.where.line == line, said(report)
    if first.severity != "note":
        assert first.proof is not None or first.measured, said(report)


@pytest.mark.parametrize("script", _name_scripts(GOOD))
def test_the_good_script_is_silent(script: Path) -> None:
    _is_silent(check_script(script, **shorten_run(script.parent.name.replace("_", "-"))))


@pytest.mark.slow
@pytest.mark.parametrize("script", _name_scripts(GOOD))
def test_the_good_script_is_silent_under_all_rules(script: Path) -> None:
    _is_silent(check_script(script))


def _is_silent(report: Report) -> None:
    """No rule speaks. Whether a run that is cut after a few seconds has learned is not their question."""
    spoken = [f.name for f in report.findings if f.severity != Severity.NOTE and f.stage != Stage.REHEARSAL]
    assert not spoken and report.failure is None and not report.internal_errors, said(report)


@pytest.mark.parametrize("rule", [r for r in load_rules() if r.stage != Stage.REHEARSAL], ids=lambda rule: rule.name)
def test_every_rule_has_a_bad_and_a_good_script(rule) -> None:
    """The questions of the rehearsal are asked of records (tests/unit/test_review.py): no check runs them."""
    name = rule.name.replace("-", "_")
    folders = (FOLDER / rule.stage.label / name, FOLDER.parent / "fit" / name)  # the latter: what Keras alone can show
    assert any((folder / "bad.py").exists() and find_scripts(folder, "good.py") for folder in folders)


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_every_rule_page_has_its_four_parts(rule) -> None:
    page = rule.page
    assert page.startswith(f"{rule.code} {rule.name}: ")
    for part in ("Why it matters:", "Evidence:", "Fix ("):
        assert part in page, part


def test_every_page_is_of_a_rule_and_no_code_has_two() -> None:
    files = Path(rules.__file__).parent.glob("*/pages.md")
    codes = [
        line.split()[1] for file in files for line in file.read_text("utf-8").split("\n") if line.startswith("## ")
    ]
    assert len(codes) > 100
    assert set(codes) <= {rule.code for rule in load_rules()} and len(set(codes)) == len(codes)


def test_the_documentation_holds_the_pages_of_all_rules() -> None:
    """Written by scripts/rule-pages."""
    folder = FOLDER.parents[1] / "docs" / "rules"
    written = {page.name: page.read_text(encoding="utf-8") for page in folder.iterdir()}
    assert written == as_markdown(FOLDER.parent)
