"""Two outputs with a loss each, in weighted sum: the kind of wine, and its alcohol from the other columns."""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.utils import shuffle

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x, y = shuffle(scale(x), y, random_state=0)
inputs = keras.Input((12,), name="rest")
hidden = layers.Dense(32, activation="gelu")(inputs)
hidden = layers.Dense(32, activation="gelu")(hidden)
outputs = {
    "kind": layers.Dense(3, activation="softmax", name="kind")(hidden),
    "alcohol": layers.Dense(1, name="alcohol")(hidden),
}
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.RMSprop(3e-3),
    loss={"kind": "sparse_categorical_crossentropy", "alcohol": "mse"},
    loss_weights={"kind": 1.0, "alcohol": 0.5},
    metrics={"kind": "accuracy", "alcohol": "mae"},
)
targets = {"kind": y, "alcohol": x[:, :1]}
model.fit(x[:, 1:], targets, batch_size=16, epochs=15, validation_split=0.2, verbose=2)
