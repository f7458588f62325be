"""Three kinds of wine, with the learning rate as Keras 2 called it.

Keras: `Argument(s) not recognized: {'lr': 0.01}`.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")])
optimizer = keras.optimizers.Adam(lr=1e-2)  # expect: renamed-argument
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
model.fit(x, y, batch_size=32, nb_epoch=3, verbose=2)
