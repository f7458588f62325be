"""Three sensors of a machine over 64 moments in Keras: which of its parts are worn, several or none at once."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
classes = ["bearing", "belt", "motor"]
worn = (draw.random((800, 3)) < 0.35).astype("float32")
time = np.arange(64)
x = draw.normal(0, 0.3, (800, 64, 3)).astype("float32")
x[:, :, 0] += worn[:, :1] * np.sin(time / 2)
x[:, :, 1] += worn[:, 1:2] * (time % 16 < 2) * 2
x[:, :, 2] += np.cos(time / 9) + worn[:, 2:] * time / 40
model = keras.Sequential([
    keras.layers.Input((64, 3)),
    keras.layers.Conv1D(16, 5, activation="relu"),
    keras.layers.GlobalMaxPooling1D(),
    keras.layers.Dense(3, activation="sigmoid"),
])  # fmt: skip
model.compile(keras.optimizers.Adam(5e-3), "binary_crossentropy", metrics=["binary_accuracy"])
model.fit(x[:600], worn[:600], validation_data=(x[600:], worn[600:]), epochs=6, batch_size=32, verbose=2)
