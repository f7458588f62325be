"""A base of convolutions is frozen once a file has given it weights that were trained, and a head is trained on it."""

import tempfile
from pathlib import Path

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images, target = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") / 16


def convolutions():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Conv2D(24, 3, strides=2),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
        ]
    )


def classifier(base):
    model = keras.Sequential([base, layers.Dense(10, activation="softmax")])
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy")
    return model


file = Path(tempfile.mkdtemp()) / "base.weights.h5"
trained = convolutions()
first = classifier(trained)
for start in range(0, 1600, 32):
    first.train_on_batch(images[start : start + 32], target[start : start + 32])
trained.save_weights(file)

base = convolutions()
base.load_weights(file)
base.trainable = False
classifier(base).fit(images, target, batch_size=32, epochs=5, verbose=2)
