"""Two moons behind layers without an activation.

`Dense` has none unless it is asked for, so the model stays a linear one: no error, and the accuracy of a straight line.
"""

import keras
from keras import layers
from sklearn.datasets import make_moons

keras.utils.set_random_seed(0)
x, y = make_moons(1000, noise=0.1, random_state=0)
model = keras.Sequential(
    [
        layers.Dense(64),  # expect: linear-stack
        layers.Dense(32),
        layers.Dense(2),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
model.fit(x.astype("float32"), y, batch_size=32, epochs=5, verbose=0)
