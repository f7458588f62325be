"""The rehearsal's watcher of Keras: a watched run is the run, and its record tells what happened in it."""

import json
import os
import subprocess
import sys

import pytest

from watched import watched

pytestmark = pytest.mark.keras
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")

# Runs each training unwatched, then all of them watched, and prints the losses of both and what the record holds.
RUN = """
import json, os, sys, tempfile
import numpy as np, keras
from keras import layers
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras.doors import finish_keras, watch_keras
draw = np.random.default_rng(0)
x = draw.normal(size=(320, 6)).astype("float32")
kind, size = x[:, :3].argmax(1), (x[:, 0] * 2 + x[:, 1]).astype("float32")
def run(training):
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    numbers = [*training(), keras.random.normal(()), np.random.rand()]
    return [float(v).hex() for v in numbers]
SCRIPT
plain = [run(training) for training in TRAININGS]
recorder = Recorder()
watch_keras(recorder, keras)
watched = []
for training in TRAININGS:
    over = recorder.record.updates + 3 if training.__name__ == "cut" else 10**9
    recorder.is_over = lambda: recorder.record.updates >= over
    watched.append(run(training))
finish_keras(recorder)
record = recorder.finish()
def right(a):
    if a.guesses is not None:
        return float((a.guesses == a.labels).mean())
    return 1.0 - float(((a.values - a.labels) ** 2).mean() / a.labels.var())
print("RESULT" + json.dumps(dict(
    plain=plain, watched=watched, updates=record.updates, losses=record.losses, errors=dict(record.watcher_errors),
    steps=[[s.number, s.rate, s.gradient_norm] for s in record.looked_updates],
    trainings=[[t.kind, t.begins, t.ends, t.planned, t.is_cut, t.where is not None] for t in record.trainings],
    answers=[[str(a.output), a.trains, len(a.labels), a.total, a.update, a.evaluation, right(a)] for a in record.answers],
    labels={str(o): sum(c.classes.values()) or c.count for o, c in record.trained_labels.items()},
    passes=[[p.number, p.update, p.is_trained, p.weights] for p in record.passes],
    best=[[b.name, b.higher_is_better, b.kept, len(b.values)] for b in record.best],
    parameters=[[p.is_trainable, p.is_held, p.had_gradient, p.has_moved, p.steps] for p in record.parameters],
    kept=[[k.how, k.weights] for k in record.kept], loaded=[[k.before, k.after] for k in record.loaded],
    numbers=sorted({n.name for n in record.numbers}), rows=[len(k) for _, _, k in record.trained_rows.values()])))
"""

# Two outputs, rows split off for validation, the worst epoch kept, and what it wrote read again; no learning rate and a
# frozen layer; batches given one by one; a training that is ended early.
FITS = """
def two_heads():
    given = keras.Input((6,))
    h = layers.BatchNormalization()(layers.Dropout(0.2)(layers.Dense(24, activation="relu")(given)))
    model = keras.Model(given, {"kind": layers.Dense(3, name="kind")(h), "size": layers.Dense(1, name="size")(h)})
    model.compile(
        keras.optimizers.Adam(0.02),
        loss={"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"},
    )
    worst = keras.callbacks.EarlyStopping("val_loss", mode="max", patience=3, restore_best_weights=True)
    history = model.fit(
        x, {"kind": kind, "size": size}, epochs=5, validation_split=0.25, callbacks=[worst], verbose=0
    ).history
    path = os.path.join(tempfile.mkdtemp(), "a.weights.h5")
    model.save_weights(path)
    more = model.fit(x, {"kind": kind, "size": size}, epochs=4, verbose=0).history
    model.load_weights(path)
    return history["loss"] + history["val_loss"] + more["loss"]

def nothing():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4, activation="tanh"), layers.Dense(1, activation="sigmoid")])
    model.layers[0].trainable = False
    model.compile(keras.optimizers.Adam(0.0), loss="binary_crossentropy", metrics=["accuracy"])
    held = (x[200:], kind[200:] > 0)
    history = model.fit(x[:200], kind[:200] > 0, epochs=2, validation_data=held, verbose=0).history
    return history["loss"] + history["val_loss"] + model.evaluate(x[100:], kind[100:] > 0, verbose=0)

def batches():
    model = keras.Sequential([layers.Dense(24, activation="relu"), layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.Adam(0.02), loss="categorical_crossentropy")
    losses = []
    for _ in range(4):
        for i in range(0, 256, 32):
            losses.append(model.train_on_batch(x[i : i + 32], np.eye(3)[kind[i : i + 32]]))
        losses.append(model.test_on_batch(x[256:], np.eye(3)[kind[256:]]))
    return [np.ravel(loss)[0] for loss in losses]

def cut():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(1)])
    model.compile("sgd", loss="mse")
    model.fit(x, size, epochs=3, verbose=0)
    return []

TRAININGS = [two_heads, nothing, batches, cut]
"""

# A loop with a tape, compiled and not.
TAPES = """
import tensorflow as tf
def loop(compiled):
    model = keras.Sequential([layers.Dense(24, activation="relu"), layers.Dropout(0.2), layers.Dense(3)])
    optimizer, loss = keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    def step(a, b):
        with tf.GradientTape() as tape:
            value = loss(b, model(a, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return value
    def test(a, b):
        return loss(b, model(a, training=False))
    step, test = (tf.function(step), tf.function(test)) if compiled else (step, test)
    rows = tf.data.Dataset.from_tensor_slices((x, kind))
    losses = []
    for _ in range(4):
        losses += [step(a, b) for a, b in rows.take(256).shuffle(256).batch(32)]
        losses += [test(a, b) for a, b in rows.skip(256).batch(32)]
    return losses
def compiled(): return loop(True)
def eager(): return loop(False)
TRAININGS = [compiled, eager]
"""


def result_of(folder, script):
    """What the script's trainings gave, and their record."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONWARNINGS": "ignore"}
    file = folder / "script.py"
    file.write_text(RUN.replace("SCRIPT", script))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environment)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT")), None)
    assert line is not None, done.stderr[-3000:]
    return json.loads(line.removeprefix("RESULT"))


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    return result_of(tmp_path_factory.mktemp("fits"), FITS)


@pytest.fixture(scope="module")
def tapes(tmp_path_factory):
    return result_of(tmp_path_factory.mktemp("tapes"), TAPES)


def test_a_watched_run_is_the_run(fits):
    assert fits["plain"] == fits["watched"]
    assert fits["errors"] == {}


def test_updates_are_counted(fits):
    """Of 8 batches of 240 rows, 10 of 320, 7 of 200, 8 given one by one, and 3 until the time is over."""
    ends = [40, 80, 94, 126, 129]
    first = fits["trainings"][0]
    stopped = first[2]  # by the callback: 4 or 5 epochs
    assert stopped in (32, 40)
    ends = [end - 40 + stopped for end in ends]
    begins = [0, *ends[:-1]]
    planned = [40, 40, 14, None, 30]
    kinds = ["fit", "fit", "fit", "loop", "fit"]
    cut = [False] * 4 + [True]
    assert fits["trainings"] == [[*row, True] for row in zip(kinds, begins, ends, planned, cut)]
    assert fits["updates"] == ends[-1]
    assert {round(rate, 6) for number, rate, _ in fits["steps"] if number <= stopped} == {0.02}
    assert [number for number, _ in fits["losses"]][:50] == list(range(50))  # then one in ten


def test_answers_stand_beside_labels_for_each_output(fits):
    found = {(name, trains, update): right for name, trains, _, _, update, _, right in fits["answers"]}
    stopped = fits["trainings"][0][2]

    def last(name):
        return found[name, True, max(u for n, trains, u in found if n == name and trains and u <= stopped + 40)]

    for name, least in (("3 classes", 0.85), ("1 number", 0.7)):
        assert last(name) > least  # of the second training, not after the weights were read
    assert found["3 classes", False, stopped] < last("3 classes")
    assert found["1 yes or no", False, stopped + 54] < 0.1
    counts = {(name, trains, update): (rows, total) for name, trains, rows, total, update, _, _ in fits["answers"]}
    assert counts["3 classes", False, stopped] == (80, 80)
    assert counts["3 classes", True, stopped] == (240, 240)
    assert counts["3 classes", True, stopped + 86][0] >= 64  # of the batches that were looked at: one in ten
    assert fits["labels"]["1 yes or no"] == 200
    assert fits["rows"]


def test_evaluation_passes_belong_to_epochs(fits):
    epochs = fits["trainings"][0][2] // 8
    at = [update for _, update, _, _ in fits["passes"]]
    assert at[:epochs] == [8 * (i + 1) for i in range(epochs)]
    assert len({weights for *_, weights in fits["passes"][:epochs]}) == epochs
    held = next(a for a in fits["answers"] if not a[1])
    assert held[5] == epochs


def test_the_epoch_that_was_restored_is_known(fits):
    [(name, higher, kept, looks)] = fits["best"]
    assert (name, higher, looks) == ("val_loss", True, fits["trainings"][0][2] // 8)
    assert kept == 0
    assert fits["kept"] == [["saved", fits["passes"][0][3]]]
    [(before, after)] = fits["loaded"]
    assert after == fits["kept"][0][1] != before


def test_what_training_did_to_each_weight(fits):
    heads, nothing = fits["parameters"][:8], fits["parameters"][8:12]
    steps = fits["trainings"][1][2]
    assert heads == [[True, True, True, True, steps]] * 8
    assert [row[0] for row in nothing] == [False, False, True, True]
    assert [row[2] for row in nothing] == [False, False, True, True]  # the rate is zero, not the gradient
    assert not any(row[3] for row in nothing)


def test_numbers_are_those_of_the_history(fits):
    assert {"loss", "val_loss", "kind_loss", "val_accuracy", "evaluate accuracy"} <= set(fits["numbers"])


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a tape is TensorFlow's")
def test_a_loop_with_a_tape(tapes):
    assert tapes["plain"] == tapes["watched"]
    assert tapes["errors"] == {}
    assert [row[:3] for row in tapes["trainings"]] == [["loop", 0, 64]]
    assert tapes["updates"] == 64
    assert [number for number, _ in tapes["losses"]][:50] == list(range(50))  # then one in ten
    assert [number for number, _, norm in tapes["steps"] if norm is None] == list(range(1, 33))  # compiled
    assert all(trained for _, _, trained, _ in tapes["passes"])
    assert len(tapes["passes"]) == 8
    held = [(rows, right) for _, trains, rows, _, _, _, right in tapes["answers"] if not trains]
    assert len(held) == 2
    assert all(rows == 64 and right > 0.7 for rows, right in held)


def test_the_row_that_made_the_weights_infinite_is_found() -> None:
    record, _ = watched("""
import keras, numpy as np
table = [{"a": i / 90, "b": float("nan") if i == 61 else i % 7, "y": i % 5} for i in range(90)]
x = np.array([[row["a"], row["b"]] for row in table], "float32")
y = np.array([row["y"] for row in table], "float32")
model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x[:80], y[:80], validation_data=(x[80:], y[80:]), epochs=1, verbose=0)
""")
    broken = record.broken
    assert broken is not None and broken.rows == (61,) and (broken.column, broken.position) == ("x", 1)
    assert broken.origin == 'row 61 of table, column "b" (nan)'


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a tape is TensorFlow's")
def test_a_metric_alone_shows_the_evaluation_of_a_loop() -> None:
    record, _ = watched("""
import keras, numpy as np, tensorflow as tf
draw = np.random.default_rng(0)
x = draw.normal(size=(96, 6)).astype("float32")
y = x[:, :3].argmax(1)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
loss, optimizer = keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.Adam(0.01)
seen, held = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.SparseCategoricalAccuracy()
for _ in range(2):
    for first in range(0, 64, 16):
        rows = x[first : first + 16]
        with tf.GradientTape() as tape:
            answers = model(rows, training=True)
            value = loss(y[first : first + 16], answers)
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        seen.update_state(y[first : first + 16], answers)  # of training rows
    held.update_state(y[64:], model(x[64:], training=False))
""")
    assert record.watcher_errors == {}
    assert [(a.trains, len(a.labels)) for a in record.answers] == [(True, 128), (False, 32)]
    assert [made.update for made in record.passes] == [4, 8]


PARTS = """
import keras, numpy as np, tensorflow as tf
rows = np.random.default_rng(0).normal(size=(320, 8)).astype("float32")
class Autoencoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
        self.decoder = keras.Sequential([keras.layers.Dense(8)])
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.decoder(self.encoder(data)) - data) ** 2)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        return {"loss": loss}
model = Autoencoder()
model.compile(optimizer=keras.optimizers.Adam(RATE))
model.fit(rows, epochs=2, verbose=0)
model.encoder.predict(rows, verbose=0)
print(model.built)
"""


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a tape is TensorFlow's")
@pytest.mark.parametrize("rate", [0.01, 0.0])
def test_a_model_without_a_call_is_followed_from_before_its_first_update(rate: float) -> None:
    """It is never built; its parts are, one of them by the first batch. Each part is the trained model."""
    record, printed = watched(PARTS.replace("RATE", str(rate)))
    assert "False" in printed and not record.watcher_errors
    assert [one.steps for one in record.parameters] == [20] * 4
    assert all(one.is_held and one.had_gradient and one.has_moved == (rate > 0) for one in record.parameters)
    assert record.parameters[1].size_before == 0  # the bias of what was built before
    assert record.trainings[0].has_moved == (rate > 0)
    assert [one.is_trained for one in record.passes] == [True]
