import os

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
pixels, digit = load_digits(return_X_y=True)
model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    pixels / 16,
    digit,
    batch_size=32,
    steps_per_epoch=len(digit) // 32,  # expect: exhausted-data
    epochs=8,
    verbose=0,
)
