# backends: tensorflow
"""Segment bright discs among bars with a tiny U-shaped net; Dice + cross-entropy; custom train_step on TensorFlow."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

SEED = 0
S = 32


def images(n, rng):
    yy, xx = np.mgrid[:S, :S]
    x = rng.normal(0, .3, (n, S, S))
    m = np.zeros((n, S, S))
    for k in range(n):
        for _ in range(rng.integers(1, 3)):
            r, cy, cx = rng.uniform(3, 6), *rng.uniform(6, S - 6, 2)
            m[k] = np.maximum(m[k], (yy - cy) ** 2 + (xx - cx) ** 2 <= r * r)
        bar = rng.integers(0, S - 3)
        if rng.random() < .5:
            x[k, bar:bar + 3] += 1
        else:
            x[k, :, bar:bar + 3] += 1
    return (x + m)[..., None].astype("float32"), m[..., None].astype("float32")


def unet():
    c = lambda f: layers.Conv2D(f, 3, padding="same", activation="relu")
    inp = keras.Input((S, S, 1))
    a = c(12)(inp)
    b = c(24)(layers.MaxPooling2D()(a))
    d = c(32)(layers.MaxPooling2D()(b))
    u = c(24)(layers.Concatenate()([layers.UpSampling2D()(d), b]))
    u = c(12)(layers.Concatenate()([layers.UpSampling2D()(u), a]))
    return inp, layers.Conv2D(1, 1)(u)


class Segmenter(keras.Model):
    """Flips image and mask together inside the training step."""

    def train_step(self, data):
        x, y = data
        both = tf.image.random_flip_left_right(tf.concat([x, y], -1))
        both = tf.image.random_flip_up_down(both)
        x, y = both[..., :1], both[..., 1:]
        with tf.GradientTape() as tape:
            z = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=z)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, z)
        return {k.name: k.result() for k in self.metrics}


def dice_bce(y, z):
    p = ops.sigmoid(z)
    inter = ops.sum(p * y, axis=(1, 2, 3))
    dice = 1 - (2 * inter + 1) / (ops.sum(p, axis=(1, 2, 3)) + ops.sum(y, axis=(1, 2, 3)) + 1)
    bce = ops.mean(ops.binary_crossentropy(y, z, from_logits=True), axis=(1, 2, 3))
    return dice + bce


def iou(y, z):
    z, y = z > 0, y > .5
    return (z & y).sum() / (z | y).sum()


keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)
xa, ya = images(500, rng)
xb, yb = images(150, rng)
model = Segmenter(*unet())
model.compile(keras.optimizers.Adam(4e-3), loss=dice_bce)
print(f"untrained IoU {iou(yb, model.predict(xb, verbose=0)):.3f}; brightness above 0.5 {iou(yb, xb - .5):.3f}")
for part in range(3):
    h = model.fit(xa, ya, batch_size=20, epochs=2, verbose=0)
    print(f"after {2 * part + 2} epochs loss {h.history['loss'][-1]:.3f} held-out IoU {iou(yb, model.predict(xb, verbose=0)):.3f}")
