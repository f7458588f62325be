"""A generator and a discriminator with an optimizer each, taught in one train_step; compile takes both."""
# backends: tensorflow

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images = (load_digits().data / 8 - 1).astype("float32")
cross = keras.losses.BinaryCrossentropy(from_logits=True)


class Gan(keras.Model):
    def __init__(self):
        super().__init__()
        self.make = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="tanh")])
        self.judge = keras.Sequential([layers.Dense(64, activation="leaky_relu"), layers.Dense(1)])
        self.made, self.judged = keras.metrics.Mean(name="made"), keras.metrics.Mean(name="judged")

    def compile(self, make_optimizer, judge_optimizer):
        super().compile()
        self.make_optimizer, self.judge_optimizer = make_optimizer, judge_optimizer

    @property
    def metrics(self):
        return [self.made, self.judged]

    def train_step(self, real):
        noise = tf.random.normal((tf.shape(real)[0], 16))
        with tf.GradientTape(persistent=True) as tape:
            false = self.make(noise)
            on_real, on_false = self.judge(real), self.judge(false)
            judged = cross(tf.ones_like(on_real), on_real) + cross(tf.zeros_like(on_false), on_false)
            made = cross(tf.ones_like(on_false), on_false)
        for loss, part, optimizer in (
            (judged, self.judge, self.judge_optimizer),
            (made, self.make, self.make_optimizer),
        ):
            variables = part.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.made.update_state(made)
        self.judged.update_state(judged)
        return {"made": self.made.result(), "judged": self.judged.result()}


model = Gan()
model.compile(keras.optimizers.Adam(1e-3, beta_1=0.5), keras.optimizers.Adam(5e-4, beta_1=0.5))
model.fit(images, batch_size=64, epochs=6, verbose=2)
