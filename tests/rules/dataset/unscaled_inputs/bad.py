import numpy as np
from material import QUIET
from sklearn.datasets import load_wine
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(0)
wine = load_wine()
features = wine.data.astype(np.float32)
rows = [{"x": x, "labels": int(y)} for x, y in zip(features, wine.target)]
trainer = Trainer(
    Net(),
    TrainingArguments(**QUIET, learning_rate=5e-3, num_train_epochs=20, per_device_train_batch_size=16),
    train_dataset=rows,  # expect: unscaled-inputs
)
trainer.train()
