"""A metric of one's own that is set back.
"""

# slow

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 3))).argmax(axis=1)


class Hits(keras.metrics.Metric):
    def __init__(self, name="hits", **settings):
        super().__init__(name=name, **settings)
        self.right = self.add_weight(name="right", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        guess = ops.argmax(y_pred, axis=-1)
        hit = ops.equal(guess, ops.cast(ops.reshape(y_true, (-1,)), guess.dtype))
        self.right.assign_add(ops.sum(ops.cast(hit, "float32")))

    def result(self):
        return self.right + 0.0

    def reset_state(self):
        self.right.assign(0.0)


model = keras.Sequential(
    [keras.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=[Hits()])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
