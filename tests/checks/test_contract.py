"""The same fault in a Trainer, Accelerate, Lightning, Keras and plain torch is named by the same rule, on its line."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import check_script, expected, said, shorten_run
from watched import watched

FOLDER = Path(__file__).parents[1] / "contract"
FRAMEWORKS = ("accelerate", "keras", "lightning", "torch", "trainer")
NEEDS = {
    "accelerate": "accelerate",
    "keras": "keras",
    "lightning": "lightning",
    "torch": "torch",
    "trainer": "transformers",
}
FAULTS = sorted(folder.name for folder in FOLDER.iterdir() if (folder / "with_torch.py").exists())


@pytest.mark.parametrize(
    "framework", [pytest.param(f, marks=[pytest.mark.keras] if f == "keras" else []) for f in FRAMEWORKS]
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_alike_in_every_framework(fault: str, framework: str) -> None:
    if find_spec(NEEDS[framework]) is None:
        pytest.skip(f"{NEEDS[framework]} is not installed")
    script = FOLDER / fault / f"with_{framework}.py"
    name, line = expected(script)
    assert name == fault.replace("_", "-")
    report = check_script(script, repair=False, **shorten_run(name))
    first = report.first_cause
    assert first is not None, said(report)
    assert (first.name, first.where.line if first.where else None) == (name, line), said(report)


def test_every_fault_is_written_for_every_framework() -> None:
    for fault in FAULTS:
        assert {s.stem for s in (FOLDER / fault).glob("*.py")} == {f"with_{name}" for name in FRAMEWORKS}


@pytest.mark.keras
def test_the_weights_of_keras_are_followed_on_every_backend() -> None:
    record, _ = watched(
        "import keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])\n"
        "model.compile('adam', 'mse')\n"
        "model.fit(np.ones((32, 4)), np.ones((32, 3)), verbose=0)\n"
        "model(np.ones((1, 4)))\n"
    )
    assert [one.has_moved for one in record.parameters] == [True, True] and not record.watcher_errors
