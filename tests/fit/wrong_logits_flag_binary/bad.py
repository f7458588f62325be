"""One score without activation, and binary_crossentropy named by a string.

Silent on each backend: losses of 0.6 to 10 where 0.1 is right.
"""

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential([keras.Input((30,)), layers.Dense(16, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="binary_crossentropy", metrics=["accuracy"])  # expect: wrong-logits-flag
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
