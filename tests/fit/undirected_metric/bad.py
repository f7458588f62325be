"""A metric function of one's own is watched, and nobody says whether more of it is better.

The callback raises a ValueError at the end of the first epoch: mode="auto" knows the metrics of Keras alone.
"""

# slow

import keras
from keras import layers, ops
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_diabetes(return_X_y=True)
features, target = scale(features).astype("float32"), scale(target).astype("float32")[:, None]


def explained(y_true, y_pred):
    return 1.0 - ops.mean(ops.square(y_true - y_pred)) / ops.mean(ops.square(y_true))


inputs = keras.Input((10,))
model = keras.Model(inputs, layers.Dense(1)(layers.Dense(16, activation="relu")(inputs)))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=[explained])
model.fit(
    features,
    target,
    epochs=20,
    validation_split=0.25,
    callbacks=[
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.EarlyStopping("val_explained", patience=4),  # expect: undirected-metric
    ],
)
