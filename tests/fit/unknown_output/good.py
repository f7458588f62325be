"""A wine's color and its kind by one network."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, kind = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
inputs = keras.Input((12,))
hidden = layers.Dense(32, activation="relu")(inputs)
colour = layers.Dense(1, name="colour")(hidden)
model = keras.Model(inputs, [colour, layers.Dense(3, activation="softmax", name="kind")(hidden)])
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss={"colour": "mse", "kind": "sparse_categorical_crossentropy"},
    metrics={"colour": ["mae"], "kind": ["accuracy"]},
)
targets = {"colour": x[:, 9:10], "kind": kind}
model.fit(x[:, [*range(9), 10, 11, 12]], targets, batch_size=16, epochs=3, verbose=2)
