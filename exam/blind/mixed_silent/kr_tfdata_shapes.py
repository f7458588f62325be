import os
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(12)
rng = np.random.default_rng(12)
SIZE = 16


def draw(kind):
    img = rng.normal(0, 0.15, (SIZE, SIZE))
    r = rng.integers(3, 6)
    cy, cx = rng.integers(r, SIZE - r, 2)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    if kind == 0:      # disc
        img[(yy - cy) ** 2 + (xx - cx) ** 2 <= r * r] += 1
    elif kind == 1:    # square outline
        box = np.maximum(abs(yy - cy), abs(xx - cx))
        img[(box <= r) & (box >= r - 1)] += 1
    else:              # cross
        img[(abs(yy - cy) <= 0) & (abs(xx - cx) <= r)] += 1
        img[(abs(xx - cx) <= 0) & (abs(yy - cy) <= r)] += 1
    return img


def build(n):
    y = rng.integers(0, 3, n)
    x = np.stack([draw(k) for k in y])[..., None].astype("float32")
    return x, y.astype("int32")


x_train, y_train = build(1200)
x_val, y_val = build(300)

AUTOTUNE = tf.data.AUTOTUNE
images = tf.data.Dataset.from_tensor_slices(x_train).shuffle(1200)
labels = tf.data.Dataset.from_tensor_slices(y_train).shuffle(1200)
train_ds = tf.data.Dataset.zip((images, labels)).batch(32).prefetch(AUTOTUNE)
val_ds = tf.data.Dataset.from_tensor_slices((x_val, y_val)).batch(100)

model = keras.Sequential([
    keras.Input((SIZE, SIZE, 1)),
    layers.Conv2D(12, 3, activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(24, 3, activation="relu"),
    layers.GlobalMaxPooling2D(),
    layers.Dense(32, activation="relu"),
    layers.Dense(3, activation="softmax"),
])
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.summary()
history = model.fit(train_ds, validation_data=val_ds, epochs=7, verbose=2)

loss, acc = model.evaluate(val_ds, verbose=0)
print(f"Validation loss {loss:.4f} accuracy {acc:.4f}")
pred = model.predict(x_val[:10], verbose=0).argmax(-1)
print("true", y_val[:10].tolist())
print("pred", pred.tolist())
