import numpy as np
from material import QUIET
from sklearn.datasets import load_diabetes
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, labels=None):
        predicted = self.layers(x)[:, 0]
        return {"loss": nn.functional.mse_loss(predicted, labels), "logits": predicted}


set_seed(0)
x, y = load_diabetes(return_X_y=True, scaled=False)
x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
y = (y - y.mean()) / y.std()
rows = [{"x": a, "labels": b} for a, b in zip(x, y.astype(np.float32))]
trainer = Trainer(
    Net(),
    TrainingArguments(**QUIET, learning_rate=3e-3, num_train_epochs=10, per_device_train_batch_size=32),
    train_dataset=rows,
)
trainer.train()
