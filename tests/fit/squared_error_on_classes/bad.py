"""Class numbers of wine as the target of a squared error.

Silent on each backend: the accuracy stays at that of chance over four epochs.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), keras.utils.to_categorical(digits.target)
model = keras.Sequential(
    [keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10, activation="softmax")]
)
model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse", metrics=["accuracy"])  # expect: squared-error-on-classes
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
