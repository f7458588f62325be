"""A base of convolutions without weights of its own is frozen, and a head is trained on what it gives.

Silent on each backend: the head learns from random features that hardly tell digits apart.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images, target = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") / 16
base = keras.Sequential(
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
base.trainable = False  # expect: frozen-untrained-layers
model = keras.Sequential([base, layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=5, verbose=2)
