"""What is read of fit's callbacks and of the calls after it: what they may write, the rates they set, and which fits are
of Keras models.
"""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from checks import check_script

if find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

pytestmark = pytest.mark.keras

SEVERAL = """
import keras
import numpy as np
from sklearn.preprocessing import StandardScaler

x, y = np.random.default_rng(0).normal(size=(64, 3)).astype("float32"), np.zeros((64, 1), "float32")


def build():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    return model


class Search:
    def fit(self, x, y):
        return self


first, second, scaler = build(), keras.Sequential([keras.layers.Dense(1)]), StandardScaler()
second.compile(keras.optimizers.SGD(0.01), "mse")
first.fit(x, y)
scaler.fit(x)
second.fit(x, y)  # told
third = build()
third.fit(x, y)  # told
fourth = keras.models.clone_model(first)
fourth.fit(x, y)  # told
searching = Search()
searching.fit(x, y)
first.fit(x, y)  # told
"""


def test_later_fits_of_keras_models_are_checked_and_no_others(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SEVERAL, encoding="utf-8")
    told = [n for n, line in enumerate(SEVERAL.split("\n"), 1) if line.endswith("# told")]
    reports = [check_script(script)]
    assert [r.begins.line for r in reports[1:] if r.begins] == told[:3]
    assert f"train.py:{told[3]} was not checked: at most 4 trainings" in reports[-1].message


WARMED = """
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile(keras.optimizers.Adam({rate}), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit((digits.data / 16).astype("float32"), digits.target, epochs=100, callbacks=[{callback}])
"""


@pytest.mark.parametrize(
    ("rate", "callback"),
    [
        ("keras.optimizers.schedules.CosineDecay(0.0, 4000, warmup_target=5e-3, warmup_steps=1700)", ""),
        ("1e-7", "keras.callbacks.LearningRateScheduler(lambda epoch: 5e-3 * (epoch + 1) / 30)"),
    ],
    ids=["schedule", "callback"],
)
def test_short_runs_rise_soon_to_the_peak_of_a_warm_up(rate: str, callback: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WARMED.format(rate=rate, callback=callback), encoding="utf-8")
    report = check_script(script)
    assert not report.findings and not report.internal_errors, report
    assert {s.stage.label: str(s.status) for s in report.stages}["overfit"] == "passed", report


@pytest.mark.parametrize(("name", "positions"), [("EarlyStopping", (0, 4)), ("ModelCheckpoint", (1, 5))])
def test_where_a_callback_takes_its_metric_and_direction_is_known(name, positions) -> None:
    import keras

    from trainwright.adapters.keras.evaluation import _watcher

    fit = SimpleNamespace(seen=SimpleNamespace(callbacks={}), model=None)
    path = () if name == "EarlyStopping" else ("best-{epoch}-{val_loss:.2f}.keras",)
    watcher = _watcher(getattr(keras.callbacks, name)(*path, monitor="val_loss", mode="min"), fit)
    assert (watcher.position, watcher.mode_position, watcher.greater) == (*positions, False)
    assert watcher.in_file_name == bool(path)


def test_only_what_the_users_own_code_raises_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the check's own at the same places were passed over, too, and never reported."""
    from trainwright.adapters.keras import evaluation

    def fail(*args, **kwargs):
        raise RuntimeError("broken")

    held = SimpleNamespace(pool=fail)
    fit = SimpleNamespace(data=SimpleNamespace(validation=held), own_step=False)
    assert evaluation.loss_call(fit, None) is None
    held.pool = lambda size: [1]
    monkeypatch.setattr(evaluation, "_forms", fail)
    with pytest.raises(RuntimeError, match="broken"):
        evaluation.loss_call(fit, None)
