"""The best weights are kept by val_auc, and the metric is called roc.

The callback raises a ValueError at the end of the first epoch: Keras finds no metric of that name.
"""

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_breast_cancer(return_X_y=True)
features, target = scale(features).astype("float32"), target.astype("float32")
model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(16, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=[keras.metrics.AUC(name="roc")])
keep = keras.callbacks.ModelCheckpoint("best.weights.h5", "val_auc", save_best_only=True, save_weights_only=True)  # expect: unknown-best-metric
model.fit(features[:400], target[:400], epochs=10, validation_data=(features[400:], target[400:]), callbacks=[keep])
