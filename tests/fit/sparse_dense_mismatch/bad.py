"""One-hot targets, and the loss for class numbers.

An error on each backend: TensorFlow `Argument `output` must have rank (ndim) `target.ndim - 1``, torch and
JAX `must have the same shape up until the last dimension`, of two shapes (16, 3) that are the same.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x, y = StandardScaler().fit_transform(x), keras.utils.to_categorical(y)
model = keras.Sequential(
    [keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")  # expect: sparse-dense-mismatch
model.fit(x, y, batch_size=16, epochs=3, verbose=2)
