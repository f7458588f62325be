"""A softmax in the last layer, and a loss that applies it again (from_logits=True).

Silent on each backend: the loss of ten classes cannot go under 1.46. (Without the clip TensorFlow would take
the scores from before the softmax, in graph mode, and learn; torch and JAX would not.)
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat = layers.Flatten()
        self.hidden, self.out = layers.Dense(64, activation="relu"), layers.Dense(10)

    def call(self, x):
        probabilities = keras.ops.softmax(self.out(self.hidden(self.flat(x))))  # expect: double-activation
        return keras.ops.clip(probabilities, 1e-7, 1 - 1e-7)


model = Reader()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
