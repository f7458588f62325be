"""Each operator of the field exam plants what it says, and nothing else."""

import difflib
import functools
import json
from pathlib import Path

import pytest

from exam.operators import OPERATORS
from exam.programs import programs
from exam.source import Source
from trainwright.registry import load_rules

# Lines that one fault may take away and add: a loop's body that moves is the longest.
MOST_LINES = 40


@functools.cache
def _sources():
    """The programs whose variables are known (python -m exam.field --names wrote them) first, then the others."""
    names = json.loads((Path(__file__).parent / "field_names.json").read_text(encoding="utf-8"))
    known = sorted(programs(), key=lambda p: p.name not in names)
    return [(p.name, functools.cache(functools.partial(Source, p.source, names.get(p.name)))) for p in known]


def _planted(operator):
    """All that the operator makes of the first program that it applies to."""
    for name, source in _sources():
        places = [p for p in operator.plant(source()) if p.source != source().text]
        if places:
            return name, source().text, places
    return None


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_it_applies_and_changes_only_lines_around_its_place(operator):
    found = _planted(operator)
    assert found, "applies nowhere"
    _, text, places = found
    for planted in places:
        compile(planted.source, "planted.py", "exec")
        before, after = text.splitlines(), planted.source.splitlines()
        changes = [
            c for c in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if c[0] != "equal"
        ]
        touched = sum(max(b - a, d - c) for _, a, b, c, d in changes)
        assert 0 < touched <= MOST_LINES, planted.change
        assert any(c - 1 <= planted.line <= d + 2 for _, _, _, c, d in changes), (planted.line, changes)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_it_says_its_fault_and_names_rules_that_exist(operator):
    assert operator.fault.endswith("."), "a sentence"
    assert set(operator.named) <= {rule.name for rule in load_rules()}


def _of(name, text, names=None):
    return [p.source for p in OPERATORS[name].plant(Source(text, names))]


LOOP = """for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("rate-times-1000", "torch.optim.Adam(model.parameters(), lr=1e-3)", "torch.optim.Adam(model.parameters(), lr=1)"),
        ("rate-times-1000", "torch.optim.SGD(params, 0.1)", "torch.optim.SGD(params, 100)"),
        ("rate-over-1000", "learning_rate = 0.5", "learning_rate = 0.0005"),
        ("rate-not-passed", "AdamW(model.parameters(), lr=3e-4)", "AdamW(model.parameters())"),
        ("gradients-never-cleared", LOOP, LOOP.replace("    optimizer.zero_grad()\n", "")),
        ("optimizer-never-steps", LOOP, LOOP.replace("    optimizer.step()\n", "")),
        ("backward-missing", LOOP, LOOP.replace("    loss.backward()\n", "")),
        ("gradients-cleared-before-step", LOOP, LOOP.replace("    optimizer.step", "    optimizer.zero_grad()\n    optimizer.step")),
        ("backward-twice", LOOP, LOOP.replace("    loss.backward()\n", "    loss.backward()\n    loss.backward()\n")),
        ("accumulation-not-divided", "(loss / accumulation).backward()", "loss.backward()"),
        ("optimizer-has-one-layer", "Adam(net.parameters())", "Adam(list(net.parameters())[-2:])"),
    ],
)  # fmt: skip
def test_it_plants_what_it_says(name, before, after):
    assert after in _of(name, before)
