# keras says val_accuracy 0.97 but my confusion matrix is garbage, what is going on
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import argparse
import tempfile

import numpy as np
import keras
import tensorflow as tf
from keras import layers
from sklearn.metrics import classification_report, confusion_matrix

ap = argparse.ArgumentParser()
ap.add_argument("--size", type=int, default=20)
ap.add_argument("--epochs", type=int, default=6)
ap.add_argument("--batch", type=int, default=32)
ap.add_argument("--n", type=int, default=1600)
cfg = ap.parse_args()
keras.utils.set_random_seed(99)

CLASSES = ["circle", "square", "cross", "triangle"]
AUTOTUNE = tf.data.AUTOTUNE


def draw(kind, size, rng):
    """replaces my image folder"""
    yy, xx = np.mgrid[0:size, 0:size]
    r = rng.uniform(4, 7)
    cy, cx = rng.uniform(r, size - r, 2)
    dy, dx = yy - cy, xx - cx
    if kind == 0:
        m = dy ** 2 + dx ** 2 <= r ** 2
    elif kind == 1:
        m = (abs(dy) <= r * 0.85) & (abs(dx) <= r * 0.85)
    elif kind == 2:
        m = ((abs(dy) <= r * 0.3) & (abs(dx) <= r)) | ((abs(dx) <= r * 0.3) & (abs(dy) <= r))
    else:
        m = (dy <= r * 0.8) & (dy >= -r * 0.9 + 1.9 * abs(dx))
    img = m * rng.uniform(120, 230) + rng.normal(20, 18, (size, size))
    return img.clip(0, 255)


def make_images(n, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(CLASSES)), n // len(CLASSES))
    x = np.stack([draw(k, cfg.size, rng) for k in y])[..., None].astype("uint8")
    return x, y.astype("int32")


def get_ds(x, y, augment=False):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    ds = ds.shuffle(len(x))
    ds = ds.batch(cfg.batch)
    if augment:
        ds = ds.map(lambda a, b: (tf.image.random_flip_left_right(a), b), num_parallel_calls=AUTOTUNE)
    return ds.prefetch(AUTOTUNE)


def get_model():
    inp = keras.Input((cfg.size, cfg.size, 1))
    x = layers.Rescaling(1.0 / 255)(inp)
    for f in (16, 32):
        x = layers.Conv2D(f, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(48, activation="relu")(x)
    x = layers.Dropout(0.2)(x)
    out = layers.Dense(len(CLASSES), activation="softmax")(x)
    return keras.Model(inp, out)


x_tr, y_tr = make_images(cfg.n, 0)
x_va, y_va = make_images(400, 1)
x_te, y_te = make_images(400, 2)
print("train", x_tr.shape, x_tr.dtype, np.bincount(y_tr))

train_ds = get_ds(x_tr, y_tr, augment=True)
val_ds = get_ds(x_va, y_va)
test_ds = get_ds(x_te, y_te)

model = get_model()
model.compile(optimizer=keras.optimizers.Adam(2e-3),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])
ckpt = os.path.join(tempfile.mkdtemp(), "best.keras")
hist = model.fit(train_ds, validation_data=val_ds, epochs=cfg.epochs, verbose=2,
                 callbacks=[keras.callbacks.ModelCheckpoint(ckpt, monitor="val_accuracy",
                                                            mode="max", save_best_only=True)])
print("best val acc", max(hist.history["val_accuracy"]))

model = keras.models.load_model(ckpt)
probs = model.predict(test_ds, verbose=0)
y_pred = probs.argmax(axis=1)
y_true = np.concatenate([b.numpy() for _, b in test_ds], axis=0)

print(confusion_matrix(y_true, y_pred))
print(classification_report(y_true, y_pred, target_names=CLASSES, zero_division=0))
acc = float((y_true == y_pred).mean())
print("FINAL test_acc=%.4f" % acc)
