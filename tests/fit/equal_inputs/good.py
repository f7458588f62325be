import keras
import numpy as np
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
pictures, digits = load_digits(return_X_y=True)
x = np.zeros((len(pictures), 8, 8, 1), "float32")
for i, picture in enumerate(pictures):
    x[i] = picture.reshape(8, 8, 1) / 16
layers = [keras.layers.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(32, "relu")]
model = keras.Sequential([*layers, keras.layers.Dense(10, "softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, digits, batch_size=64, epochs=5, verbose=0)
