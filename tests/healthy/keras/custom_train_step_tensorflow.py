"""An own train_step with GradientTape: a second loss on noisy inputs, and metrics of one's own."""
# backends: tensorflow

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


class Steady(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = keras.Sequential([layers.Dense(48, activation="relu"), layers.Dense(10)])
        self.total = keras.metrics.Mean(name="loss")
        self.right = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    @property
    def metrics(self):
        return [self.total, self.right]

    def call(self, x):
        return self.net(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            scores, shaken = self(x, training=True), self(x + tf.random.normal(tf.shape(x), stddev=0.1), training=True)
            loss = self.compute_loss(y=y, y_pred=scores) + tf.reduce_mean((scores - shaken) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.total.update_state(loss)
        self.right.update_state(y, scores)
        return {m.name: m.result() for m in self.metrics}


model = Steady()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=6, verbose=2)
