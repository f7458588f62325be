"""train_on_batch with a curriculum: count the vowels of random words, short words first."""
import os

os.environ["KERAS_BACKEND"] = "jax"
import random

import keras
import numpy as np
from keras import layers

random.seed(2)
keras.utils.set_random_seed(2)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAXLEN = 16


def word(n):
    return "".join(random.choice("aeiou" if random.random() < 0.4 else LETTERS) for _ in range(n))


def label(w):
    return min(sum(c in "aeiou" for c in w), 7)


def encode(ws):
    x = np.zeros((len(ws), MAXLEN), "int32")
    for i, w in enumerate(ws):
        x[i, :len(w)] = [LETTERS.index(c) + 1 for c in w]
    return x, np.array([label(w) for w in ws], "int32")


held = {n: encode([word(n) for _ in range(200)]) for n in (4, 8, 12, 16)}

model = keras.Sequential([
    keras.Input((MAXLEN,), dtype="int32"),
    layers.Embedding(27, 16),
    layers.Conv1D(32, 3, padding="same", activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(48, activation="relu"),
    layers.Dense(8),
])
schedule = keras.optimizers.schedules.CosineDecay(0.0, 900, warmup_target=8e-3, warmup_steps=100)
model.compile(
    optimizer=keras.optimizers.Adam(schedule),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

stages = [(4, 200), (8, 250), (12, 250), (16, 300)]
for longest, steps in stages:
    seen = []
    model.reset_metrics()
    for _ in range(steps):
        xb, yb = encode([word(random.randint(3, longest)) for _ in range(64)])
        logs = model.train_on_batch(xb, yb, return_dict=True)
        seen.append(float(logs["loss"]))
    parts = []
    for n, (x, y) in held.items():
        p = model.predict_on_batch(x).argmax(-1)
        parts.append(f"len{n} {np.mean(p == y):.3f}")
    print(f"stage <= {longest:2d}: loss {seen[-1]:.3f}  held-out acc " + "  ".join(parts))

x = np.concatenate([a for a, _ in held.values()])
y = np.concatenate([b for _, b in held.values()])
loss, acc = model.evaluate(x, y, verbose=0)
majority = np.bincount(y).max() / len(y)
print(f"all lengths: loss {loss:.3f} acc {acc:.3f} (most common answer {majority:.3f})")
