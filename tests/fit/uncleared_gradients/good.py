"""A train_step of one's own, on torch, that clears the gradients of the batch before."""

# slow
# backends: torch

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = layers.Dense(64, activation="relu"), layers.Dense(10)

    def call(self, x):
        return self.head(self.hidden(x))

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        loss.backward()
        weights = self.trainable_weights
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        return {"loss": loss}


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = Network()
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
