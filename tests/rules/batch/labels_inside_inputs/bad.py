import os

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
pixels, digit = load_digits(return_X_y=True)


class Rows(keras.utils.PyDataset):
    def __len__(self):
        return len(digit) // 32

    def __getitem__(self, number):
        part = slice(32 * number, 32 * number + 32)
        return {"pixels": pixels[part] / 16, "labels": digit[part]}


given = keras.Input((64,), name="pixels")
hidden = keras.layers.Dense(64, activation="relu")(given)
model = keras.Model({"pixels": given}, keras.layers.Dense(10, activation="softmax")(hidden))
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Rows(), epochs=8, verbose=0)  # expect: labels-inside-inputs
