"""A train_step of one's own, on TensorFlow, that computes gradients and leaves it at that.

Silent: the loss stays where it began.
"""
# backends: tensorflow

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = layers.Dense(64, activation="relu"), layers.Dense(10)

    def call(self, x):
        return self.head(self.hidden(x))

    def train_step(self, data):  # expect: unstepped-optimizer
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        return {"loss": loss, "norm": tf.linalg.global_norm(gradients)}


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = Network()
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
