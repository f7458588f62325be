"""Digits with a GradientTape loop, gradient accumulation by hand, weights averaged for evaluation."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(9)
d = load_digits()
x = (d.images / 16.0).astype("float32")[..., None]
x_tr, x_te, y_tr, y_te = train_test_split(x, d.target.astype("int32"), test_size=0.25, random_state=9,
                                          stratify=d.target)


def build():
    return keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", use_bias=False), layers.BatchNormalization(momentum=0.9),
        layers.Activation("relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", use_bias=False), layers.BatchNormalization(momentum=0.9),
        layers.Activation("relu"), layers.GlobalAveragePooling2D(),
        layers.Dropout(0.3), layers.Dense(10)])


model, averaged = build(), build()
averaged.set_weights(model.get_weights())
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
opt = keras.optimizers.SGD(0.08, momentum=0.9, nesterov=True)
ds = tf.data.Dataset.from_tensor_slices((x_tr, y_tr)).shuffle(2000, seed=0).batch(32, drop_remainder=True)
ACCUM, DECAY = 2, 0.95
acc_train = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def micro_step(xb, yb):
    with tf.GradientTape() as tape:
        logits = model(xb, training=True)
        loss = loss_fn(yb, logits)
    acc_train.update_state(yb, logits)
    return loss, tape.gradient(loss, model.trainable_variables)


@tf.function
def logits_of(net_id, xb):
    return model(xb, training=False) if net_id == 0 else averaged(xb, training=False)


def accuracy(net_id):
    return float(np.mean(logits_of(net_id, tf.constant(x_te)).numpy().argmax(1) == y_te))


total, step = 12 * (len(x_tr) // 32) // ACCUM, 0
for epoch in range(12):
    acc_train.reset_state()
    store, losses = None, []
    for i, (xb, yb) in enumerate(ds):
        loss, grads = micro_step(xb, yb)
        losses.append(float(loss))
        store = grads if store is None else [a + b for a, b in zip(store, grads)]
        if (i + 1) % ACCUM == 0:
            opt.learning_rate = 0.08 * min(1.0, step / 20) * (1 - step / (total + 1))
            opt.apply([g / ACCUM for g in store], model.trainable_variables)
            store = None
            step += 1
            for a, w in zip(averaged.weights, model.weights):
                if a.dtype.startswith("float"):
                    a.assign(DECAY * a + (1 - DECAY) * w)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d} loss {np.mean(losses):.4f} train acc {float(acc_train.result()):.4f} "
              f"test acc {accuracy(0):.4f} averaged {accuracy(1):.4f}")
print("final averaged test accuracy:", round(accuracy(1), 4))
