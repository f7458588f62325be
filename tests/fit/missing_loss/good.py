"""An autoencoder of digits that was compiled without a loss: a layer adds it."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images = (load_digits().data / 16).astype("float32")


class Compared(layers.Layer):
    def call(self, pair):
        seen, made = pair
        self.add_loss(ops.mean(ops.square(seen - made)))
        return made


seen = keras.Input((64,))
code = layers.Dense(32, activation="relu")(seen)
model = keras.Model(seen, Compared()([seen, layers.Dense(64)(code)]))
model.compile(optimizer=keras.optimizers.Adam(5e-3))
model.fit(images, batch_size=32, epochs=3, verbose=2)
