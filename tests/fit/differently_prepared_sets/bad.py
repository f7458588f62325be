"""Digits from two readers: one stores a picture by rows, the other by columns, so validation pictures lie on their side.

Silent on each backend: the training loss falls, the validation loss rises and looks like overfitting.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
pictures, labels = load_digits(return_X_y=True)
pictures = (pictures / 16).reshape(-1, 8, 8, 1).astype("float32")
x_train, x_val, y_train, y_val = train_test_split(pictures, labels, random_state=0)
x_val = x_val.transpose(0, 2, 1, 3)  # expect: differently-prepared-sets
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss, metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=8, validation_data=(x_val, y_val), verbose=2)
