"""A last layer without activation, and a loss named by a string: it reads the scores as probabilities.

Silent on each backend: the loss stays between 2 and 11, the accuracy near that of chance.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target
model = keras.Sequential(
    [keras.Input((8, 8)), layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)]
)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="sparse_categorical_crossentropy", metrics=["accuracy"])  # expect: wrong-logits-flag
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
