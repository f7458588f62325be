"""A plain Sequential of tf-keras, built by its first fit, with dropout and a part of the data held out."""

import numpy as np
import tf_keras as keras
from tf_keras import layers

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
x = random.normal(size=(600, 12))
y = (x @ random.normal(size=(12, 3))).argmax(1)
model = keras.Sequential(
    [layers.Dense(32, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.1), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
print("weights", [float(abs(w).sum()) for w in model.get_weights()])
