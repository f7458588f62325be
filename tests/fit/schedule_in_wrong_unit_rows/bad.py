"""A cosine decay over the rows of all epochs, in place of their batches.

Silent: when training ends the rate is still above 99 % of where it began.
"""

# slow
import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_breast_cancer(return_X_y=True)
features, target = scale(features).astype("float32"), target.astype("float32")
epochs = 20
inputs = keras.Input((30,))
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(layers.Dense(16, activation="relu")(inputs)))
model.compile(
    optimizer=keras.optimizers.SGD(
        learning_rate=keras.optimizers.schedules.CosineDecay(0.05, len(features) * epochs)  # expect: schedule-in-wrong-unit
    ),
    loss="binary_crossentropy",
)
model.fit(features, target, batch_size=16, epochs=epochs)
