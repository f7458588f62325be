"""A polynomial decay over the updates of all epochs."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target
epochs = 25
model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
schedule = keras.optimizers.schedules.PolynomialDecay(5e-3, decay_steps=epochs * -(-len(images) // 32))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(schedule), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=epochs)
