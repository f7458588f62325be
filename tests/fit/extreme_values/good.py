import keras
import numpy as np
from sklearn.datasets import load_diabetes

keras.utils.set_random_seed(0)
X, y = load_diabetes(return_X_y=True)
X, y = (X * 20).astype("float32"), ((y - y.mean()) / y.std()).astype("float32")
model = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
model.fit(X[:350], y[:350], batch_size=32, epochs=30, verbose=0)
print(np.mean((model.predict(X[350:], verbose=0)[:, 0] - y[350:]) ** 2))
