"""One sigmoid unit, and the loss that takes its probability."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(16, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
