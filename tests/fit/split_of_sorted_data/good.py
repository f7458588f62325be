"""Wine, mixed before validation_split takes the tail."""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
x, y = shuffle(x, y, random_state=0)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=16, epochs=10, validation_split=0.25, verbose=2)
