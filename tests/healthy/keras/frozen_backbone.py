"""An encoder learned on five classes, then frozen and compiled anew under a head for all ten, then tuned gently."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = digits.images[..., None].astype("float32") / 16, digits.target
encoder = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(24, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.Conv2D(24, 3, activation="relu"),
        layers.Flatten(),
    ]
)


def learn(head, rows, rate, epochs):
    model = keras.Sequential([encoder, head])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss, metrics=["accuracy"])
    model.fit(images[rows], target[rows], batch_size=32, epochs=epochs, verbose=2)


learn(layers.Dense(5), target < 5, 3e-3, 4)
encoder.trainable = False
head = layers.Dense(10)
learn(head, target >= 0, 5e-3, 4)
encoder.trainable = True
learn(head, target >= 0, 2e-4, 2)
