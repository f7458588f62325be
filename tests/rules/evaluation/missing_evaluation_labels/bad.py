"""Labels called target: they are learned, and the evaluation does not look for them."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, pixels, target=None):
        scores = self.layers(pixels)
        return {"loss": F.cross_entropy(scores, target), "logits": scores} if target is not None else {"logits": scores}


def compute_metrics(given):
    return {"accuracy": float((given.predictions.argmax(-1) == given.label_ids).mean())}


x, y = load_digits(return_X_y=True)
rows = [{"pixels": torch.tensor(a / 16).float(), "target": int(b)} for a, b in zip(x, y)]
args = TrainingArguments(**QUIET, learning_rate=3e-3, eval_strategy="epoch")  # expect: missing-evaluation-labels
Trainer(Net(), args, train_dataset=rows[:1500], eval_dataset=rows[1500:], compute_metrics=compute_metrics).train()
