"""Validation batches without end, and fit without validation_steps.

Silent: after the first epoch training stands still at its validation.
"""

# slow
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_breast_cancer(return_X_y=True)
features, target = scale(features).astype("float32"), target.astype("float32")


class Draws(keras.utils.PyDataset):
    def __init__(self, features, target):
        super().__init__()
        self.features, self.target = features, target

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        rows = np.random.default_rng(index).choice(len(self.target), 32)
        return self.features[rows], self.target[rows]


held = Draws(features[450:], target[450:])  # expect: endless-epoch
model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(16, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(features[:450], target[:450], epochs=10, validation_data=held)
