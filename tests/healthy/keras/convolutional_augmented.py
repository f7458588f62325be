"""Digits through a convolutional network with augmentation layers, batch norm, dropout and SGD at 0.1."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = digits.images[..., None].astype("float32") / 16, digits.target
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.RandomTranslation(0.1, 0.1, fill_mode="constant"),
        layers.RandomRotation(0.03),
        layers.Conv2D(16, 3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.GlobalAveragePooling2D(),
        layers.Dropout(0.2),
        layers.Dense(10, activation="softmax"),
    ]
)
optimizer = keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)
model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images[:1400], target[:1400], epochs=8, validation_data=(images[1400:], target[1400:]), verbose=2)
