"""An optimizer that updates after every eighth batch, with momentum and a rate that suits 64 rows, not 8."""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
pictures, labels = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile(
    optimizer=keras.optimizers.SGD(0.5, momentum=0.9, gradient_accumulation_steps=8),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(pictures[:1440], labels[:1440], batch_size=8, epochs=6, validation_data=(pictures[1440:], labels[1440:]))
