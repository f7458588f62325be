"""What is read of fit's callbacks and of the calls after it: what they may write, the rates they set, and which fits are
of Keras models.
"""

import contextlib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from walking import walk

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


def test_later_fits_of_keras_models_are_walked_and_no_others(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SEVERAL, encoding="utf-8")
    told = [n for n, line in enumerate(SEVERAL.split("\n"), 1) if line.endswith("# told")]
    reports = [walk(script)]
    assert [r.begins.line for r in reports[1:] if r.begins] == told[:3]
    assert f"train.py:{told[3]} was not walked: at most 4 trainings" in reports[-1].message


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
    report = walk(script)
    assert not report.findings and not report.internal_errors, report
    assert {s.stage.label: str(s.status) for s in report.stages}["overfit"] == "passed", report


def reads(self, epoch, logs=None):
    logs = logs or {}
    if logs.get("loss") is not None and "accuracy" in logs:
        self.seen = logs["accuracy"]


def adds(self, epoch, logs=None):
    logs["val_f1"] = 0.5


def updates(self, epoch, logs):
    logs.update(val_f1=0.5)


def hands_on(self, epoch, logs):
    self.score(logs)


@pytest.mark.parametrize(("function", "may"), [(reads, False), (adds, True), (updates, True), (hands_on, True)])
def test_a_callback_of_ones_own_may_add_to_the_logs_unless_it_only_reads_them(function, may) -> None:
    import keras

    from trainwright.adapters.keras.callbacks import may_add_to_logs

    own = type("Own", (keras.callbacks.Callback,), {"on_epoch_end": function})
    assert may_add_to_logs(own()) == may
    assert may_add_to_logs(keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs)))
    assert not may_add_to_logs(keras.callbacks.ReduceLROnPlateau())


@pytest.mark.parametrize(("name", "positions"), [("EarlyStopping", (0, 4)), ("ModelCheckpoint", (1, 5))])
def test_where_a_callback_takes_its_metric_and_direction_is_known(name, positions) -> None:
    import keras

    from trainwright.adapters.keras.callbacks import _watcher

    fit = SimpleNamespace(seen=SimpleNamespace(callbacks={}), model=None)
    path = () if name == "EarlyStopping" else ("best-{epoch}-{val_loss:.2f}.keras",)
    watcher = _watcher(getattr(keras.callbacks, name)(*path, monitor="val_loss", mode="min"), fit)
    assert (watcher.position, watcher.mode_position, watcher.greater) == (*positions, False)
    assert watcher.in_file_name == bool(path)


def test_only_what_the_users_own_code_raises_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the walk's own at the same places were passed over, too, and never reported."""
    from trainwright.adapters.keras import callbacks, evaluation

    def fail(*args, **kwargs):
        raise RuntimeError("broken")

    held = SimpleNamespace(pool=fail)
    fit = SimpleNamespace(
        data=SimpleNamespace(validation=held),
        own_step=False,
        model=SimpleNamespace(test_on_batch=fail),
        observer=lambda detail: contextlib.nullcontext(),
        tensors_of=lambda batch: (batch, None, None),
    )
    monkeypatch.setattr(callbacks, "is_own", lambda model, name: False)
    assert evaluation.loss_call(fit, None) is None and callbacks._taken(fit, "test", [1]) == ()
    held.pool, fit.model.test_on_batch = lambda size: [1], lambda *args, **kwargs: {"loss": 0.5}
    for module, name in ((evaluation, "_forms"), (callbacks, "_names")):
        monkeypatch.setattr(module, name, fail)
    with pytest.raises(RuntimeError, match="broken"):
        evaluation.loss_call(fit, None)
    with pytest.raises(RuntimeError, match="broken"):
        callbacks._taken(fit, "test", [1])
