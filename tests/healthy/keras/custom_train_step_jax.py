"""An own train_step without state: jax's gradients, and a penalty on large scores."""
# backends: jax

import jax
import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


class Modest(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = keras.Sequential([layers.Dense(48, activation="relu"), layers.Dense(10)])

    def call(self, x):
        return self.net(x)

    def loss_and_state(self, trainable, fixed, x, y):
        scores, fixed = self.stateless_call(trainable, fixed, x, training=True)
        return self.compute_loss(x, y, scores) + 1e-3 * ops.mean(scores**2), (scores, fixed)

    def train_step(self, state, data):
        trainable, fixed, slots, measures = state
        x, y = data
        both = jax.value_and_grad(self.loss_and_state, has_aux=True)
        (loss, (scores, fixed)), gradients = both(trainable, fixed, x, y)
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        logs, kept = {}, []
        for metric in self.metrics:
            mine = measures[len(kept) : len(kept) + len(metric.variables)]
            mine = metric.stateless_update_state(mine, *([loss] if metric.name == "loss" else [y, scores]))
            logs[metric.name] = metric.stateless_result(mine)
            kept += mine
        return logs, (trainable, fixed, slots, kept)


model = Modest()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=6, verbose=2)
