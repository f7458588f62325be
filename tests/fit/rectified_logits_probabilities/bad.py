"""A ReLU layer at the end of a functional model, and a loss named by a string, which takes probabilities.

TensorFlow: the loss divides what the ReLU gives by its sum, is NaN as soon as one row has zeros alone, and the accuracy
ends at 0.33. torch: NaN after some epochs. JAX: silent, and slower.
"""

# slow

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
inputs = keras.Input((13,))
hidden = layers.Dense(32, activation="tanh")(inputs)
outputs = layers.ReLU()(layers.Dense(3)(hidden))  # expect: rectified-logits
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="categorical_crossentropy", metrics=["accuracy"])
model.fit(x, keras.utils.to_categorical(y), batch_size=16, epochs=10, verbose=2)
