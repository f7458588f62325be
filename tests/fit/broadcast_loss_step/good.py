"""A train_step of one's own, on TensorFlow, with a squared error by hand of outputs and targets of one shape."""

# slow
# backends: tensorflow

import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Regression(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self(x, training=True)[:, 0]) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
x = draw.normal(size=(960, 8)).astype("float32")
y = (x @ draw.normal(size=8)).astype("float32")
inputs = keras.Input((8,))
model = Regression(inputs, layers.Dense(1)(layers.Dense(32, activation="relu")(inputs)))
model.compile(optimizer=keras.optimizers.Adam(5e-3))
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
