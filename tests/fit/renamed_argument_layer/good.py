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
hidden = layers.Dense(32, activation="relu", kernel_initializer="he_normal", kernel_regularizer="l2")
model = keras.Sequential([keras.Input((13,)), hidden, layers.Dense(3, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")
kept = keras.callbacks.ModelCheckpoint("best.keras", monitor="loss", save_freq="epoch")
model.fit(x, y, batch_size=32, epochs=3, verbose=2, callbacks=[kept])
