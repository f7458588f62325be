"""A frame of which inputs and labels are drawn in random order together."""

# slow

import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
frame = pd.DataFrame(draw.normal(50, 10, size=(600, 8)), columns=list("abcdefgh"))
frame["bought"] = (frame.a + frame.b - frame.c > 50 + draw.normal(0, 5, 600)).astype(int)
frame = frame.sample(frac=1, random_state=1)
x = frame.drop(columns="bought").to_numpy()
y = frame["bought"].to_numpy()
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=0)
scaler = StandardScaler().fit(x_train)
model = keras.Sequential([keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=["accuracy"])
held = (scaler.transform(x_val), y_val)
x_train = scaler.transform(x_train)
model.fit(x_train, y_train, batch_size=32, epochs=10, validation_data=held, verbose=2)
