"""Classes 0 to 9 divided by 255 together with the pixels, and cast to integers: all are 0.

Silent on each backend: accuracy 1.0 and a loss of 1e-5 from the second epoch on.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = (digits.images / 16).astype("float32")
target = (digits.target / 255).astype("int32")
model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=3, verbose=2)  # expect: destroyed-labels
