"""Adam with a rate of 1 on a small picture network.

Silent on each backend: a loss of 80 to 190 in the first epoch, then that of chance.
"""

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
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1.0), loss=loss, metrics=["accuracy"])  # expect: excessive-learning-rate
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
