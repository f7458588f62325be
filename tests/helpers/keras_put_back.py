"""Prints whether training after a check is that of an untouched script, bit for bit: run by test_keras.py on each backend."""

import keras
import numpy as np

import trainwright

random = np.random.default_rng(0)
inputs = random.normal(size=(200, 6)).astype("float32")
target = (inputs[:, 0] + inputs[:, 1] > 0).astype("int64")


def training(checked: bool, *, before: bool) -> list[float]:
    """The losses of two epochs, and the weights after them.

    Args:
        before: the model was trained, so that its optimizer holds state, before it is checked.
    """
    keras.utils.clear_session()
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    data = {"x": inputs, "y": target, "batch_size": 32, "validation_split": 0.2}
    if before:
        model.fit(**data, epochs=1, verbose=0)
    if checked:
        report = trainwright.check(model, **data, epochs=2)
        assert not report.internal_errors, report.internal_errors
        assert {str(s.status) for s in report.stages} <= {"passed", "skipped", "not shown"}, report
        assert model.built == before
    history = model.fit(**data, epochs=2, verbose=0).history
    losses = [float(v) for name in ("loss", "val_loss", "accuracy") for v in history[name]]
    return [*losses, *(float(v) for w in model.get_weights() for v in np.ravel(w))]


for before in (False, True):
    assert training(True, before=before) == training(False, before=before), f"trained before: {before}"
print("the same")
