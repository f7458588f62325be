"""A PyDataset that makes its batches from indices, mixed anew after each epoch, with dict inputs."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = scale(x).astype("float32")


class Patients(keras.utils.PyDataset):
    def __init__(self, rows, size=32):
        super().__init__()
        self.rows, self.size, self.draw = np.array(rows), size, np.random.default_rng(0)

    def __len__(self):
        return -(-len(self.rows) // self.size)

    def __getitem__(self, i):
        chosen = self.rows[i * self.size : (i + 1) * self.size]
        return {"mean": x[chosen, :10], "rest": x[chosen, 10:]}, y[chosen, None].astype("float32")

    def on_epoch_end(self):
        self.draw.shuffle(self.rows)


order = np.random.default_rng(1).permutation(len(x))
inputs = {"mean": keras.Input((10,), name="mean"), "rest": keras.Input((20,), name="rest")}
hidden = layers.Dense(16, activation="tanh")(layers.Concatenate()(list(inputs.values())))
model = keras.Model(inputs, layers.Dense(1)(hidden))
model.compile(
    optimizer=keras.optimizers.Adam(5e-3),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
)
model.fit(Patients(order[:450]), epochs=8, validation_data=Patients(order[450:]), verbose=2)
