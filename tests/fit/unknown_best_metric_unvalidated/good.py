"""Early stopping by the validation loss of a fifth of the rows."""

# slow

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_wine(return_X_y=True)
order = np.random.default_rng(0).permutation(len(target))
features, target = scale(features).astype("float32")[order], target[order]


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(32, activation="relu")
        self.head = layers.Dense(3)

    def call(self, x):
        return self.head(self.hidden(x))


class Progress(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        if epoch % 10 == 0:
            print(epoch, logs.get("loss"))


model = Classifier()
model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.CallbackList(
    [Progress(), keras.callbacks.EarlyStopping(patience=5)],
    model=model,
)
model.fit(features, target, batch_size=16, epochs=200, validation_split=0.2, callbacks=watch, verbose=0)
