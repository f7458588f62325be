"""Whole programs of authors who had seen neither the code nor the rules: sound ones are checked in silence.

Beside them lie patches with the fault that each author planted, and, where that is not named today, with a fault of a kind
that a rule knows. `# expect:` says by which rule and on which line the fault is named first.
"""

from pathlib import Path

import pytest

from checks import check_script, expected, loud, said
from exam.patches import Patch, patches
from trainwright.core import Status

IDIOMS = Path(__file__).parents[1] / "idioms"
SOUND = sorted(IDIOMS.glob("*.py"))
OF_AUTHORS = patches(IDIOMS / "author_faults.patch")
NAMED = [p for p in [*OF_AUTHORS, *patches(IDIOMS / "known_faults.patch")] if "# expect:" in p.text]
# Checked in CI, because no other test shows what they do; `make test-all` checks them all.
QUICK = frozenset({"tqdm_auto_spirals", "while_try_next", "prefetcher", "accumulate_leftover", "runner_hooks_padding",
                   "step_closure_foreach", "two_phase_finetune", "lr_finder", "warmup_on_copy", "maml_sine", "moco_queue",
                   "click_torchmetrics", "st_mnrl", "ppo_cleanrl", "dqn_grid"})  # fmt: skip


def _marked(program: Path | Patch) -> object:
    sound = program.program if isinstance(program, Patch) else program.name
    quick = sound.removesuffix(".py") in QUICK
    return pytest.param(program, id=program.name.removesuffix(".py"), marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("program", [_marked(p) for p in SOUND])
def test_a_sound_program_is_checked_in_silence(program: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = check_script(program, budget=90)
    assert not loud(report) and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status == Status.FAILED], said(report)


@pytest.mark.parametrize("patch", [_marked(p) for p in NAMED])
def test_the_planted_fault_is_named_first_at_its_line(patch: Patch, tmp_path: Path, monkeypatch) -> None:
    script = tmp_path / patch.name
    script.write_text(patch.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = check_script(script, budget=90)
    name, line = expected(script)
    first = report.first_cause
    assert first is not None and first.where is not None, said(report)
    assert (first.name, first.where.line) == (name, line), said(report)


def test_the_programs_are_many_and_a_fault_is_named_in_each() -> None:
    names = [p.name for p in SOUND]
    assert len(names) >= 110
    assert sorted(p.program for p in OF_AUTHORS) == names
    assert sorted(p.program for p in NAMED) == names
