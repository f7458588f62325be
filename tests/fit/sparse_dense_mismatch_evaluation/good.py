"""Three kinds of wine, with validation data of the same form."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x_train, x_held, y_train, y_held = train_test_split(x, y, test_size=40, stratify=y, random_state=0)
scaler = StandardScaler().fit(x_train)
held = (scaler.transform(x_held), y_held)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(scaler.transform(x_train), y_train, validation_data=held, batch_size=16, epochs=3, verbose=2)
