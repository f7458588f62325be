"""One sigmoid unit, and a loss that takes a score for each of the two labels.

TensorFlow: `Received a label value of 1 which is outside the valid range of [0, 1)`. torch: `Target 1 is out of
bounds.` JAX: silent, the loss is 4e-8 from the first epoch on.
"""

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
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")  # expect: class-loss-of-one-score
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
