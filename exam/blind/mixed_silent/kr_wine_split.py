"""Leaf species from four measurements, functional API. Data comes as one table per species."""
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
g = np.random.default_rng(3)

SPECIES = ["oak", "beech", "maple", "birch", "alder"]
centres = g.normal(0, 1.6, (5, 4))


def table(k, n):
    mix = g.normal(0, 0.6, (4, 4)) * 0.5 + np.eye(4) * 0.5
    return centres[k] + g.normal(size=(n, 4)) @ mix


tables = {name: table(k, 240) for k, name in enumerate(SPECIES)}

# last 40 leaves of every species are kept for the final report
x, y, x_test, y_test = [], [], [], []
for k, name in enumerate(SPECIES):
    rows = tables[name]
    x.append(rows[:200])
    y += [k] * 200
    x_test.append(rows[200:])
    y_test += [k] * 40
x, x_test = np.concatenate(x).astype("float32"), np.concatenate(x_test).astype("float32")
y, y_test = np.array(y), np.array(y_test)

norm = layers.Normalization()
norm.adapt(x)

inp = keras.Input((4,), name="leaf")
h = norm(inp)
h = layers.Dense(32, activation="relu")(h)
h = layers.Dropout(0.1)(h)
h = layers.Dense(32, activation="relu")(h)
out = layers.Dense(len(SPECIES), activation="softmax")(h)
model = keras.Model(inp, out)

model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
hist = model.fit(
    x, y,
    epochs=25,
    batch_size=32,
    validation_split=0.2,
    verbose=0,
)
for e in range(0, 25, 6):
    print(f"epoch {e + 1}: " + " ".join(f"{k}={v[e]:.3f}" for k, v in hist.history.items()))

test_loss, test_acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {test_loss:.3f}  test accuracy {test_acc:.3f}")
pred = model.predict(x_test, verbose=0).argmax(1)
for k, name in enumerate(SPECIES):
    print(f"  {name:7s} recall {np.mean(pred[y_test == k] == k):.2f}")
