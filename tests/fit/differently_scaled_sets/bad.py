"""Houses whose columns are standardized for training; the validation rows are left as they were.

Silent on each backend: the training loss falls, the validation loss is in the thousands and looks like overfitting.
"""

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
area, year = draw.normal(120, 40, 1500), draw.integers(1950, 2020, 1500)
rooms, distance = draw.integers(1, 8, 1500), draw.exponential(9, 1500)
x = np.stack([area, rooms, year, distance], axis=1)
price = 2.0 * area + 15 * rooms + 0.5 * (year - 1950) - 3 * distance + draw.normal(0, 20, 1500)
y = ((price - price.mean()) / price.std()).astype("float32")
x_train, x_val, y_train, y_val = train_test_split(x, y, random_state=0)  # expect: differently-scaled-sets
scaler = StandardScaler()
x_train = scaler.fit_transform(x_train)
model = keras.Sequential([keras.Input((4,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse", metrics=["mae"])
model.fit(x_train, y_train, batch_size=32, epochs=10, validation_data=(x_val, y_val), verbose=2)
