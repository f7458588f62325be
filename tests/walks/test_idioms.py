"""Whole programs of authors who had seen neither the code nor the rules: sound ones are walked in silence.

Beside each stands the same program with the fault that its author planted (`# FAULT`); where the first cause is named
today, `# expect` says by which rule and on which line. The others are known gaps: docs/diagnosis.md counts them; in each of
those programs `idiom_faults.py` plants a fault of another kind, one that a rule knows, and that is named.
"""

from pathlib import Path

import pytest

from idiom_faults import FAULTS
from trainwright.core.report import Status
from walking import expected, loud, said, walk

PROGRAMS = sorted((Path(__file__).parents[1] / "idioms").glob("*.py"))
SOUND = [p for p in PROGRAMS if not p.stem.endswith("_bad")]
NAMED = [p for p in PROGRAMS if p.stem.endswith("_bad") and "# expect:" in p.read_text(encoding="utf-8")]
# Walked in CI, because no other test shows what they do; `make test-slow` walks them all.
QUICK = frozenset({"tqdm_auto_spirals", "while_try_next", "prefetcher", "accumulate_leftover", "runner_hooks_padding",
                   "step_closure_foreach", "two_phase_finetune", "lr_finder", "warmup_on_copy", "maml_sine", "moco_queue",
                   "click_torchmetrics", "st_mnrl", "ppo_cleanrl", "dqn_grid"})  # fmt: skip


def _marked(programs: list[Path]) -> list[object]:
    quick = [p.stem.removesuffix("_bad") in QUICK for p in programs]
    return [pytest.param(p, id=p.stem, marks=() if q else pytest.mark.slow) for p, q in zip(programs, quick)]


def _of_table() -> list[object]:
    return [pytest.param(s, id=s, marks=() if s in QUICK else pytest.mark.slow) for s in FAULTS]


@pytest.mark.parametrize("program", _marked(SOUND))
def test_a_sound_program_is_walked_in_silence(program: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = walk(program, budget=90)
    assert not loud(report) and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status in (Status.FAILED, Status.BLOCKED)], said(report)


@pytest.mark.parametrize("program", _marked(NAMED))
def test_the_planted_fault_is_named_first_at_its_line(program: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = walk(program, budget=90)
    name, line = expected(program)
    first = report.first_cause
    assert first is not None and first.where is not None, said(report)
    assert (first.name, first.where.line) == (name, line), said(report)


def test_the_programs_are_many() -> None:
    assert len(SOUND) >= 110 and len(PROGRAMS) == 2 * len(SOUND)


@pytest.mark.parametrize("stem", _of_table())
def test_a_fault_that_a_rule_knows_is_named_first_at_its_line(stem: str, tmp_path: Path, monkeypatch) -> None:
    fault, text = FAULTS[stem], (SOUND[0].parent / f"{stem}.py").read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    script = tmp_path / f"{stem}.py"
    script.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = walk(script, budget=90)
    lines = [line.strip() for line in script.read_text(encoding="utf-8").splitlines()]
    first = report.first_cause
    assert first is not None and first.where is not None, said(report)
    assert (first.name, first.where.line) == (fault.rule, lines.index(fault.line) + 1), said(report)


def test_a_fault_is_named_in_each_of_the_programs() -> None:
    own = {p.stem.removesuffix("_bad") for p in NAMED}
    assert own | FAULTS.keys() == {p.stem for p in SOUND} and not own & FAULTS.keys()
