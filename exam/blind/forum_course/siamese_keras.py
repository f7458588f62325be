"""Unit 7: metric learning with a custom train_step (Keras 3).

Supervised contrastive loss on digits; afterwards the embedding is scored with a
nearest-neighbour vote against the training set.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import argparse
import math

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier


@keras.saving.register_keras_serializable()
class WarmupCosine(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warmup, total):
        super().__init__()
        self.peak, self.warmup, self.total = peak, warmup, total

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        ramp = (step + 1.0) / self.warmup
        done = tf.clip_by_value((step - self.warmup) / (self.total - self.warmup), 0.0, 1.0)
        return self.peak * tf.minimum(ramp, 0.5 * (1.0 + tf.cos(math.pi * done)))

    def get_config(self):
        return {"peak": self.peak, "warmup": self.warmup, "total": self.total}


class ContrastiveModel(keras.Model):
    def __init__(self, encoder, dim=32, temperature=0.2, micro=2):
        super().__init__()
        self.encoder = encoder
        self.projector = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(dim)])
        self.temperature = temperature
        self.micro = micro
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x, training=False):
        z = self.projector(self.encoder(x, training=training), training=training)
        return tf.math.l2_normalize(z, axis=1)

    def contrastive(self, z, y):
        n = tf.shape(z)[0]
        sim = tf.matmul(z, z, transpose_b=True) / self.temperature
        eye = tf.eye(n)
        sim = sim - 1e9 * eye
        positive = tf.cast(y[:, None] == y[None, :], tf.float32) - eye
        log_prob = sim - tf.reduce_logsumexp(sim, axis=1, keepdims=True)
        per_row = tf.reduce_sum(positive * log_prob * (1 - eye), 1) / tf.maximum(tf.reduce_sum(positive, 1), 1.0)
        return -tf.reduce_mean(per_row)

    def train_step(self, data):
        x, y = data
        grads, total = None, 0.0
        for xs, ys in zip(tf.split(x, self.micro), tf.split(y, self.micro)):
            with tf.GradientTape() as tape:
                loss = self.contrastive(self(xs, training=True), ys)
            g = tape.gradient(loss, self.trainable_variables)
            grads = g if grads is None else [a + b for a, b in zip(grads, g)]
            total += loss / self.micro
        grads = [g / self.micro for g in grads]
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(total)
        return {"loss": self.loss_tracker.result()}


def make_encoder():
    return keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.RandomTranslation(0.1, 0.1, fill_mode="constant"),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.GlobalMaxPooling2D(),
    ])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--k", type=int, default=5)
    args = parser.parse_args()
    keras.utils.set_random_seed(2)

    digits = load_digits()
    x = (digits.images / 16.0).astype("float32")[..., None]
    y = digits.target.astype("int32")
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.3, random_state=9, stratify=y)

    stream = (tf.data.Dataset.from_tensor_slices((x_tr, y_tr))
              .repeat().shuffle(2000).batch(args.batch, drop_remainder=True).prefetch(2))
    encoder = make_encoder()

    def score():
        e_tr, e_te = (encoder.predict(v, batch_size=512, verbose=0) for v in (x_tr, x_te))
        return KNeighborsClassifier(args.k).fit(e_tr, y_tr).score(e_te, y_te)

    before = score()
    model = ContrastiveModel(encoder)
    schedule = WarmupCosine(6e-3, 40, args.epochs * args.steps)
    model.compile(optimizer=keras.optimizers.Adam(schedule, clipnorm=1.0))
    history = model.fit(stream, steps_per_epoch=args.steps, epochs=args.epochs, verbose=0)
    for i, value in enumerate(history.history["loss"]):
        print(f"epoch {i:2d} contrastive loss {value:.4f}")
    print(f"FINAL knn_acc={score():.4f} before_training={before:.4f}")


if __name__ == "__main__":
    main()
