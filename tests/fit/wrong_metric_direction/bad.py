"""Training is stopped when the accuracy no longer falls: mode="min".

Silent: it ends after four epochs, with the weights of the worst one.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")])
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
stop = keras.callbacks.EarlyStopping(  # expect: wrong-metric-direction
    monitor="val_accuracy", mode="min", patience=3, restore_best_weights=True
)
model.fit(images, target, epochs=30, validation_split=0.2, callbacks=stop)
