"""A last layer without activation, and a loss that is told so."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target
model = keras.Sequential(
    [keras.Input((8, 8)), layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)]
)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
