"""When a planted fault counts: the program raises, or ends worse than its sound runs."""

import pytest

from exam.checks import Verdict, judge
from exam.draw import names_of
from exam.oracle import Raised, Run, bites, real_run
from exam.outcome import Measure
from exam.programs import Program

PROGRAM = '''"""A regression."""
import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(64, 3)
targets = inputs.sum(1, keepdim=True)


def fit(model, steps):
    """Some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return nn.functional.mse_loss(model(inputs), targets).item()


print(f"final error: {fit(nn.Linear(3, 1), 200):.4f}")
'''


def run(score: float, raised: Raised | None = None) -> Run:
    return Run((Measure(name="score", value=score, is_score=True, is_evaluated=True),), raised)


@pytest.mark.parametrize(
    ("planted", "harm", "kind"),
    [
        (run(0.9, Raised("ValueError", "no", 3)), "worse", "crash"),
        (run(0.5), "worse", "silent"),
        (run(0.99), "worse", ""),
        (run(0.99), "differs", "silent"),  # too good
        (run(0.91), "differs", ""),
        (None, "worse", ""),  # too slow to tell
    ],
)
def test_a_fault_counts_where_it_makes_the_program_worse(planted, harm, kind):
    assert bites([run(0.9), run(0.92), run(0.91)], planted, harm).kind == kind


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr("exam.oracle.FIELD", tmp_path)
    script = tmp_path / "train.py"
    script.write_text(PROGRAM, encoding="utf-8")
    return Program("train.py", script)


def test_runs_are_measured_kept_and_vary_with_the_seed(program):
    first, second = real_run(program, PROGRAM), real_run(program, PROGRAM, 1)
    values = [{m.name: m.value for m in one.measures} for one in (first, second)]
    assert values[0]["R2 of 1 number, evaluation"] > 0.99 and values[0]["its own final error"] < 0.01
    assert values[0]["training loss"] != values[1]["training loss"]
    assert real_run(program, PROGRAM) == first
    wrong = real_run(program, PROGRAM.replace("nn.Linear(3, 1)", "nn.Linear(4, 1)"))
    assert wrong.raised.type == "RuntimeError" and wrong.raised.line == 14  # the innermost line of the script


def test_the_variables_of_a_program_are_noted(program):
    names = names_of(program)
    assert names["::inputs"]["shape"] == [64, 3] and names["::inputs"]["kind"] == "tensor"
    assert names["fit::optimizer"]["kind"] == "optimizer"


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([("misaligned-labels", 8)], {"named", "first", "line"}),
        ([("misaligned-labels", 40)], {"named", "first"}),
        ([("non-finite-loss", 30), ("misaligned-labels", 8)], {"named", "wrong"}),
        ([("non-finite-loss", 7)], {"elsewhere"}),
        ([("unlearnable-batch", 8)], {"symptom"}),  # it is in the fault's names, and names nothing
        ([], {"false_pass"}),
    ],
)
def test_the_first_cause_is_judged_by_its_name_and_its_line(findings, expected):
    verdict = Verdict(tuple(findings), findings[0] if findings else None, 1 if findings else 0, 1.0)
    marks = judge(verdict, ("misaligned-labels", "unlearnable-batch"), (8,))
    assert {name for name in vars(marks) if getattr(marks, name)} == expected


def test_an_unexplained_stop_is_no_false_pass():
    assert not judge(Verdict((), None, 3, 1.0), (), (8,)).false_pass
