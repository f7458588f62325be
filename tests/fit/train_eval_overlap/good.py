"""Rows of the rare class are drawn several times after the split; and answers to a form, of which many are alike."""

# slow

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
measured = draw.normal(size=(1200, 10))
answers = draw.binomial(2, 0.3, size=(1200, 6)) - 0.6
rare_row = measured[:, :3].sum(axis=1) + draw.normal(size=1200) > 3.0


def fit(x, y):
    x_train, x_val, y_train, y_val = train_test_split(x.astype("float32"), y, test_size=0.2, random_state=0)
    rare, usual = np.flatnonzero(y_train == 1), np.flatnonzero(y_train == 0)
    rows = np.concatenate([usual, draw.choice(rare, len(usual))])
    hidden = layers.Dense(64, activation="relu")
    model = keras.Sequential([keras.Input(x.shape[1:]), hidden, layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x_train[rows], y_train[rows], batch_size=32, epochs=10, validation_data=(x_val, y_val), verbose=2)


fit(measured, rare_row.astype("int64"))
fit(answers, (answers.sum(axis=1) > 1.5).astype("int64"))
