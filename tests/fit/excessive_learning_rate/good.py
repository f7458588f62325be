"""Adam with a rate of 0.002 on a small picture network."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = digits.images[..., None].astype("float32") / 16, digits.target
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=2e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
