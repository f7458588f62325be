"""An own train_step with torch's autograd, mixing pairs of rows (mixup)."""
# backends: torch

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), keras.utils.to_categorical(digits.target)


class Mixed(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = keras.Sequential([layers.Dense(48, activation="relu"), layers.Dense(10)])

    def call(self, x):
        return self.net(x)

    def train_step(self, data):
        x, y = data
        share, order = torch.distributions.Beta(0.3, 0.3).sample(), torch.randperm(len(x))
        x, y = share * x + (1 - share) * x[order], share * y + (1 - share) * y[order]
        self.zero_grad()
        scores = self(x, training=True)
        loss = self.compute_loss(y=y, y_pred=scores)
        loss.backward()
        weights = [w for w in self.trainable_weights if w.value.grad is not None]
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        for metric in self.metrics:
            metric.update_state(loss) if metric.name == "loss" else metric.update_state(y, scores)
        return {m.name: m.result() for m in self.metrics}


model = Mixed()
loss = keras.losses.CategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=8, verbose=2)
