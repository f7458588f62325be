"""Three kinds of wine.
"""

# slow

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")])
optimizer = keras.optimizers.Adam(learning_rate=1e-2)
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
