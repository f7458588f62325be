"""A training loop is checked in whatever form it is written: in silence where it is sound, and its fault is named."""

from pathlib import Path

import pytest

from checks import check_script, loud, said
from loop_forms import FORMS, PRELUDE
from trainwright.core import Status

pytestmark = pytest.mark.slow

# A second softmax before the loss, wherever the form calls it.
_SOUND, _FAULTY = (
    "lossf = nn.CrossEntropyLoss()",
    (
        "class Twice(nn.Module):\n"
        "    def forward(self, scores, labels):\n"
        "        return nn.functional.cross_entropy(scores.softmax(1), labels)\n"
        "lossf = Twice()"
    ),
)


def _script(folder: Path, form: str, prelude: str = PRELUDE) -> Path:
    script = folder / "train.py"
    script.write_text(prelude + FORMS[form])
    return script


@pytest.mark.parametrize("form", FORMS)
def test_a_sound_loop_of_this_form_is_checked_in_silence(tmp_path: Path, form: str) -> None:
    report = check_script(_script(tmp_path, form))
    assert not loud(report) and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status == Status.FAILED], said(report)


@pytest.mark.parametrize("form", [
    pytest.param(form, marks=pytest.mark.xfail(
        strict=True, reason="a model that is called with other weights is not looked at") if "meta" in form else ())
    for form in FORMS
])  # fmt: skip
def test_a_softmax_too_many_is_named_in_a_loop_of_this_form(tmp_path: Path, form: str) -> None:
    assert _SOUND in PRELUDE
    script = _script(tmp_path, form, PRELUDE.replace(_SOUND, _FAULTY))
    report = check_script(script)
    line = (
        script.read_text().splitlines().index("        return nn.functional.cross_entropy(scores.softmax(1), labels)")
    )
    found = [(f.name, f.where.line if f.where else 0) for f in report.findings if f.name in loud(report)]
    assert found == [("double-activation", line + 1)], said(report)


def test_gradients_that_are_never_cleared_are_named_whatever_the_counter_does(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        PRELUDE
        + """
for epoch in range(8):
    for i, (x, y) in enumerate(loader, start=1):
        loss = lossf(model(x), y)
        loss.backward()
        opt.step()
"""
    )
    assert loud(check_script(script)) == ["uncleared-gradients"]


@pytest.mark.parametrize("clearing", ["model.zero_grad()", "for p in model.parameters(): p.grad = None"])
def test_gradients_that_are_cleared_in_each_micro_step_are_named(tmp_path: Path, clearing: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        PRELUDE
        + f"""
for epoch in range(8):
    for i, (x, y) in enumerate(loader):
        loss = lossf(model(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            opt.step()
        {clearing}
"""
    )
    assert loud(check_script(script)) == ["wiped-accumulation"]
