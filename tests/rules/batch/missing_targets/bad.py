import os

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
pixels, digit = load_digits(return_X_y=True)
pixels = pixels / 16
layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
model = keras.Sequential([keras.Input((64,)), *layers])
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(pixels, epochs=8, verbose=0)  # expect: missing-targets
