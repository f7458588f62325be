"""A softmax over one unit, for a question of two answers.

TensorFlow: the loss falls to 0.06 (it is computed from the score before the softmax), the accuracy stays at
0.6274. torch and JAX: the loss stays at 5.94.
"""

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential(
    [
        keras.Input((30,)),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="softmax"),  # expect: one-unit-softmax
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
