"""A projection on principal components that is frozen after compile, in tf-keras.

Silent: tf-keras keeps what was trainable when it compiled, and trains the projection on. (In Keras 3 a freeze between
compile and the first fit holds.)
"""

import tf_keras as keras
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from tf_keras import layers

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = digits.data.astype("float32") / 16, digits.target
found = PCA(24, whiten=True).fit(images)
encoder = keras.Sequential([keras.Input((64,)), layers.Dense(24)])
weight = (found.components_ / found.explained_variance_[:, None] ** 0.5).T
encoder.set_weights([weight, -found.mean_ @ weight])
model = keras.Sequential([encoder, layers.Dense(32, activation="relu"), layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
encoder.trainable = False  # expect: ineffective-freeze
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
print("changed", abs(encoder.get_weights()[0] - weight).max())
