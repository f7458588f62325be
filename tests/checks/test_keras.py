"""Keras: what a check leaves, what it is asked, and its measurements against slow, obvious ones."""

import math
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import trainwright
from checks import check_script
from trainwright.errors import UsageError

if find_spec("keras") is None:
    pytest.skip("keras is not installed", allow_module_level=True)

pytestmark = pytest.mark.keras

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
def test_training_after_a_check_is_that_of_an_untouched_script(backend: str) -> None:
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    ended = subprocess.run(
        [sys.executable, str(HERE / "helpers" / "keras_put_back.py")],
        env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.strip().endswith("the same"), ended.stdout + ended.stderr


def test_what_cannot_be_checked_is_refused() -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(UsageError, match="compiled"):
        trainwright.check(model, x=np.zeros((4, 2)))
    model.compile(loss="mse")
    with pytest.raises(UsageError, match="got none"):
        trainwright.check(model)
    with pytest.raises(UsageError, match="rows must be arguments of fit"):
        trainwright.check(model, x=np.zeros((4, 2)), rows=3)
    with pytest.raises(UsageError, match="only with a compiled Keras model"):
        trainwright.check(None, x=np.zeros((4, 2)))


def test_a_model_that_was_never_compiled_is_refused_by_keras_itself(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\nmodel = keras.Sequential([keras.layers.Dense(2)])\n"
        "model.fit(np.zeros((8, 3)), np.zeros(8))\n"
    )
    report = check_script(script)
    assert report.failure is not None and "compile" in report.failure.message, report
    assert report.failure.where is not None and report.failure.where.line == 3
    assert not report.internal_errors


def test_a_model_that_is_loaded_comes_compiled_under_a_check_too(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\nfrom pathlib import Path\n"
        "random = np.random.default_rng(0)\nx = random.normal(size=(64, 3))\n"
        "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nfile = Path(__file__).parent / 'model.keras'\nmodel.save(file)\n"
        "model = keras.models.load_model(file)\nassert model.compiled\nmodel.evaluate(x, x[:, :1])\n"
        "model.fit(x, x[:, :1], epochs=3)\n"
    )
    report = check_script(script)
    assert report.failure is None and not report.internal_errors, report
    assert [str(s.status) for s in report.stages if s.stage.label == "gradients"] == ["passed"], report


@pytest.mark.parametrize(("loss", "metrics"), [("counted", "[]"), ("'mse'", "[counted]")], ids=["loss", "metric"])
def test_what_fails_in_a_graph_alone_is_seen(loss: str, metrics: str, tmp_path: Path) -> None:
    """A step by itself has values, that of fit has none; other backends compute with values, too, or trace the same."""
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\nx = np.random.default_rng(0).normal(size=(64, 3))\n"
        "def counted(true, predicted):\n"
        "    return keras.ops.mean((true - predicted) ** 2) * (1.0 + float(true.numpy().size > 0))\n"
        "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
        f"model.compile('adam', loss={loss}, metrics={metrics})\nmodel.fit(x, x[:, :1], epochs=3)\n"
    )
    report = check_script(script)
    if os.environ["KERAS_BACKEND"] == "tensorflow":
        assert report.failure is not None and "numpy" in report.failure.message, report
        assert report.failure.where is not None and report.failure.where.line == 4
    assert not report.internal_errors, report


def test_arrays_of_unequal_length_are_refused_as_keras_refuses_them(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\nmodel = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(np.zeros((90, 3)), np.zeros(89))\n"
    )
    report = check_script(script)
    assert report.failure is not None and "'x' sizes: 90" in report.failure.message, report


def test_a_check_without_epochs_plans_nothing() -> None:
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(64, 3))
    report = trainwright.check(model, x=x, y=x[:, :1] + 9.0)
    assert "planned" not in report.stages[0].why and not [f for f in report.findings if "planned" in f.message]
    assert "planned" in trainwright.check(model, x=x, y=x[:, :1] + 9.0, epochs=2).stages[0].why


def test_functions_that_are_named_for_those_of_the_former_backend_are_there() -> None:
    import keras

    from trainwright.frameworks.removed_names import MODULE_NAMES

    said = [
        re.findall(r"keras\.(\w+)\.(\w+)", text)
        for (owner, _), text in MODULE_NAMES.items()
        if owner == "keras.backend"
    ]
    named = {pair for pairs in said for pair in pairs}
    assert len(named) > 50
    assert [f"{module}.{name}" for module, name in named if not hasattr(getattr(keras, module), name)] == []


def test_what_names_brought_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "named.py"
    script.write_text(
        "import keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, activation='softmax')])\n"
        "model.compile('adam', 'sparse_categorical_crossentropy')\n"
        "x = np.random.default_rng(0).normal(size=(60, 2))\n"
        "model.fit(x, (x[:, 0] > 0) + (x[:, 1] > 0) * 1, batch_size=20, epochs=2)\n"
    )
    said = check_script(script).stages[0].why
    assert '"adam" sets learning_rate 0.001, beta_1 0.9, beta_2 0.999, epsilon 1e-07' in said
    assert '"sparse_categorical_crossentropy" sets from_logits False' in said and "batch_size" not in said


def kept_loss(loss: object, scores: np.ndarray, targets: np.ndarray) -> object:
    from trainwright.seams.keras.loss import KeptLoss, kind_of

    kind = kind_of(loss)
    assert kind is not None
    return KeptLoss(kind=kind, loss=loss, scores=scores, targets=targets, value=loss(targets, scores))  # type: ignore[operator]


def test_a_class_loss_is_measured_row_by_row_and_against_a_constant() -> None:
    import keras

    from trainwright.probes.constant import constant_and_floor
    from trainwright.seams.keras.loss import judge_call, losses_of_rows, measure_call

    scores = np.array([[2.0, 0.5, -1.0], [0.0, 0.0, 0.0], [-3.0, 1.0, 4.0], [0.2, 0.1, 0.3]], dtype=np.float32)
    labels = np.array([0, 2, 2, 1])
    kept = kept_loss(keras.losses.SparseCategoricalCrossentropy(from_logits=True), scores, labels)
    rows = [-row[y] + math.log(sum(math.exp(v) for v in row)) for row, y in zip(scores.tolist(), labels)]
    facts = measure_call(kept, at=None)  # type: ignore[arg-type]
    assert losses_of_rows(kept) == pytest.approx(rows, abs=1e-5)  # type: ignore[arg-type]
    assert (facts.function, facts.from_logits, facts.takes_indices) == ("cross_entropy", True, True)
    assert facts.plain_value == pytest.approx(sum(rows) / 4, abs=1e-5)
    assert (facts.smallest_target, facts.largest_target) == (0, 2)
    constant, floor = constant_and_floor([[judge_call(kept)]], [sum(rows) / 4])  # type: ignore[arg-type]
    assert constant == pytest.approx(-sum(p * math.log(p) for p in (0.25, 0.25, 0.5))) and floor == 0
    assert judge_call(kept).answers == ([0, 0, 2, 2], [0, 2, 2, 1])  # type: ignore[arg-type]


def test_a_loss_is_compared_in_the_shapes_in_which_keras_compares_it() -> None:
    import keras

    from trainwright.seams.keras.loss import measure_call

    column = kept_loss(keras.losses.MeanSquaredError(), np.ones((4, 1), np.float32), np.zeros(4))
    facts = measure_call(column, at=None)  # type: ignore[arg-type]
    assert facts.inputs.shape == facts.targets.shape == (4, 1)
    steps = kept_loss(keras.losses.MeanSquaredError(), np.ones((4, 5, 1), np.float32), np.zeros((4, 1)))
    facts = measure_call(steps, at=None)  # type: ignore[arg-type]
    assert (facts.inputs.shape, facts.targets.shape) == ((4, 5), (4, 1))


def test_what_a_string_named_is_shown_with_every_default_it_brought() -> None:
    import keras

    from trainwright.adapters.keras.optimizer import resolve_arguments
    from trainwright.adapters.keras.setup import arguments
    from trainwright.seams.listening.seen import BuiltObjects, Construction

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    given = {"optimizer": "adam", "loss": "sparse_categorical_crossentropy"}
    model.compile(**given)
    seen = BuiltObjects()
    place = trainwright.core.finding.Place("script.py", 1)
    seen.compiled[model] = Construction(
        name="compile", frame_file="script.py", line=1, place=place, keywords=frozenset(given), given=given
    )
    rate = resolve_arguments(model.optimizer, seen)["optimizer.learning_rate"]
    assert (rate.value, rate.given) == (0.001, False)
    shown = arguments(model, {"epochs": 3}, seen, {"optimizer": model.optimizer})
    assert (shown["optimizer"].value, shown["optimizer"].given) == ("adam", True)
    assert (shown["loss.from_logits"].value, shown["loss.from_logits"].given) == (False, False)
    assert (shown["epochs"].value, shown["epochs"].given) == (3, True)
    assert not shown["batch_size"].given


def test_a_widened_head_keeps_its_old_outputs_and_is_put_back() -> None:
    import keras

    from trainwright.adapters.keras.state import KerasState
    from trainwright.tensors.keras import objects as tensors

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="head")])
    model.compile(optimizer="adam", loss="mse")
    state, rows = KerasState([model]), np.eye(2, dtype=np.float32)
    before = tensors.to_numpy(model(rows))
    assert tensors.widen_head(model, 5) == "head"
    wider = tensors.to_numpy(model(rows))
    assert wider.shape == (2, 5) and np.allclose(wider[:, :3], before)
    state.put_back()
    assert np.array_equal(tensors.to_numpy(model(rows)), before) and model.layers[-1].units == 3


def test_a_base_whose_name_holds_a_dot_is_unfrozen() -> None:
    """keras.applications calls its models mobilenetv2_0.35_96; paths of layers are written with dots, too."""
    import keras

    from trainwright.tensors.keras import objects as tensors

    if keras.config.backend() == "torch":
        pytest.skip("torch takes no such names")
    base = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="inner")], name="base_0.5")
    base.trainable = False
    model = keras.Sequential([base, keras.layers.Dense(1)])
    tensors.unfreeze(model, None, ["base_0.5.inner.kernel"])
    assert base.layers[0].kernel.trainable and len(model.trainable_variables) == 3


def test_gradients_are_kept_in_their_own_type_and_compared_in_float64() -> None:
    """Copies of all gradients in float64 took 2.4 GB for 300 million weights."""
    from trainwright.adapters.keras import gradients as keras_gradients
    from trainwright.probes.gradients import share_added

    random = np.random.default_rng(0)
    whole, other = (
        {k: random.normal(size=s).astype(np.float32) * np.float32(1e-25) for k, s in enumerate([(3, 4), (5,)])}
        for _ in range(2)
    )
    kept = {k: keras_gradients._copied(g) for k, g in whole.items()}
    assert all(kept[k].dtype == np.float32 and not np.shares_memory(kept[k], g) for k, g in whole.items())
    flat, apart = (np.concatenate([g.astype(np.float64).ravel() for g in one.values()]) for one in (whole, other))
    expected = (flat - apart) @ flat / (flat @ flat)
    assert share_added(other, whole, whole) == pytest.approx(expected, rel=1e-5)
    assert share_added({}, whole, whole) is None


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_an_optimizer_made_anew_has_the_rate_of_the_old_one(scaled: bool) -> None:
    """A schedule need not say how it is written down; under a loss scale the rate is that of the optimizer within."""
    import keras

    from trainwright.adapters.keras.held_variables import renew_optimizer
    from trainwright.tensors.keras.which_keras import version

    class Halving(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 / (step + 1)

    for rate in (Halving(), 0.25):
        inner = keras.optimizers.SGD(rate, momentum=0.5)
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.LossScaleOptimizer(inner) if scaled else inner, "mse")
        renew_optimizer(model)
        new = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        assert new is not inner and new.momentum == 0.5
        assert version().rate(inner) is rate or rate == 0.25
        assert version().rate(new) is rate or float(version().rate(new)) == rate


def test_dropout_is_set_within_recurrent_layers_that_have_some() -> None:
    """Keras 3 shows a recurrent layer's dropout as a property, which cannot be set."""
    import keras

    from trainwright.tensors.keras import objects as tensors

    layers = keras.layers

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dropout = layers.Dropout(0.9)

    model = keras.Sequential(
        [keras.Input((4, 3)), layers.LSTM(2, dropout=0.9, return_sequences=True), layers.GRU(2), layers.Dropout(0.9)]
    )  # fmt: skip
    tensors.set_dropout(model, 0.1)
    assert [la.dropout for la in model.layers[:2]] == [0.1, 0.0] and model.layers[2].rate == 0.1
    tensors.set_dropout(keras.Sequential([block := Block()]), 0.1)
    assert block.dropout.rate == 0.1


def test_an_observer_whose_repair_raises_leaves_the_layers_as_they_were() -> None:
    import keras

    from trainwright.core import Repair, Seam
    from trainwright.seams.keras.observer import Observer

    def change(call):
        raise ValueError("no such layer")

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5)])
    with pytest.raises(ValueError, match="no such layer"), Observer(model, [Repair("", Seam.FORWARD, change)]):
        pass
    assert "call" not in vars(model.layers[0])


def test_a_step_is_compiled_anew_for_a_tensor_that_is_left_on_the_graph() -> None:
    import keras

    from trainwright.adapters.keras.backend import CompiledSteps, backend_of
    from trainwright.adapters.keras.held_variables import fit_optimizer
    from trainwright.core import Repair, Seam
    from trainwright.seams.keras.observer import Observer

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    fit_optimizer(model)
    steps, rows = CompiledSteps(model, backend_of()), keras.ops.ones((2, 3))
    whole = Repair("whole", Seam.CUT, lambda call: call.replace(result=call["value"]))

    def loss(x):
        answer = keras.ops.mean(model(x))
        return keras.ops.stop_gradient(answer) + 0.0 * answer

    def moved(repairs: list[Repair]) -> float:
        before = np.array(keras.ops.convert_to_numpy(model.layers[0].kernel))
        with Observer(model, repairs):
            steps.take(loss, rows, [], repairs)
        return float(np.abs(keras.ops.convert_to_numpy(model.layers[0].kernel) - before).max())

    assert moved([]) == 0.0 < moved([whole])


def test_a_step_of_ones_own_that_is_a_tf_function_is_seen_with_its_gradients() -> None:
    import keras

    from trainwright.adapters.keras.calls import is_own
    from trainwright.adapters.keras.custom_step import OwnStep
    from trainwright.adapters.keras.held_variables import fit_optimizer
    from trainwright.seams.keras.step_record import StepRecord

    if keras.config.backend() != "tensorflow":
        pytest.skip("tf.function is TensorFlow's")
    import tensorflow as tf

    class Model(keras.Sequential):
        @tf.function
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    model = Model([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd")
    fit_optimizer(model)
    record = StepRecord()
    assert is_own(model, "train_step") and not is_own(model, "test_step")
    OwnStep(model).run((tf.ones((4, 3)), tf.ones((4, 1)), None), record, update=False)
    assert record.gradients and np.isfinite(np.asarray(record.gradients[0])).all()
    assert not tf.config.functions_run_eagerly()


def test_a_schedule_is_asked_with_what_fit_counts_updates_in() -> None:
    import keras

    from trainwright.adapters.keras.schedule import dry_run

    class Falling(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            assert "int" in str(step.dtype)
            return 0.5 / keras.ops.maximum(keras.ops.cast(step, "float32") - 1e5, 1.0)

    found = dry_run(keras.optimizers.Adam(Falling()), [], 100_000, range(1))
    assert found.failure is None and found.peak == found.now == 0.5
    assert found.moves_at == 200_000 and found.points[-1] == (99_999, 1.0)


def test_an_input_whose_branch_begins_with_zeros_is_not_ignored() -> None:
    import keras

    from trainwright.adapters.keras.forward_probes import probes_of
    from trainwright.adapters.keras.input.fit_data import fit_data
    from trainwright.adapters.keras.training import FitTraining
    from trainwright.seams.listening.seen import BuiltObjects

    inputs = {name: keras.Input((3,), name=name) for name in ("used", "late", "unused")}
    late = keras.layers.Dense(2, kernel_initializer="zeros")(inputs["late"])
    unused = keras.layers.Rescaling(0.0)(inputs["unused"])
    joined = keras.layers.Concatenate()([keras.layers.Dense(2)(inputs["used"]), late, unused])
    model = keras.Model(inputs, keras.layers.Dense(1)(joined))
    model.compile("sgd", "mse")
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    given = {"x": dict.fromkeys(inputs, rows), "y": rows[:, :1], "batch_size": 8}
    fit = FitTraining(model, given, sys._getframe(), fit_data(given), BuiltObjects())
    before = keras.ops.convert_to_numpy(model.layers[-1].kernel).copy()
    with fit.ready(0):
        assert probes_of(fit, fit.take(1, seed=0), None)["ignored_inputs"] == ("unused",)
    assert np.array_equal(keras.ops.convert_to_numpy(model.layers[-1].kernel), before)


def test_a_layer_whose_name_holds_a_dot_is_found_in_evaluation_mode() -> None:
    from types import SimpleNamespace

    import keras

    from trainwright.adapters.keras.step_facts import _inactive

    if keras.config.backend() == "torch":
        pytest.skip("torch takes no such names")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dropout(0.5, name="head.drop")])
    modes = SimpleNamespace(inactive={"head.drop": None})
    record = SimpleNamespace(trained=model.trainable_variables, gradients=[1.0, 1.0], modes=modes)
    assert _inactive(SimpleNamespace(model=model), record) == {"head.drop": None}  # type: ignore[arg-type]


def test_labels_that_were_numbered_from_one_are_renumbered_and_the_check_goes_on(tmp_path: Path) -> None:
    """The data go on holding the old numbers: what the loss is given counts."""
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\nkeras.utils.set_random_seed(3)\nrandom = np.random.default_rng(0)\n"
        "y = random.integers(0, 3, 400)\nx = (random.normal(size=(400, 8)) + y[:, None]).astype('float32')\n"
        "model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])\n"
        "loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n"
        "model.compile(keras.optimizers.Adam(0.01), loss)\nmodel.fit(x, y + 1, epochs=5)\n"
    )
    report = check_script(script)
    (finding,) = report.findings
    assert finding.name == "misnumbered-labels" and finding.fix is not None and finding.fix.tried
    assert {s.stage.label: str(s.status) for s in report.stages}["loss"] == "repaired"
