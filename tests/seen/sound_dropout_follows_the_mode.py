# verdict: learns
# finds: nothing
# Dropout as a function that follows the model's mode.
import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(64, 128), nn.Linear(128, 10)
        self.norm = nn.BatchNorm1d(128)

    def forward(self, pixels, labels=None):
        hidden = F.dropout(F.relu(self.norm(self.first(pixels))), 0.2, self.training)
        scores = self.last(hidden)
        return {"loss": F.cross_entropy(scores, labels), "logits": scores}


x, y = load_digits(return_X_y=True)
rows = [{"pixels": torch.tensor(a / 16, dtype=torch.float32), "labels": int(b)} for a, b in zip(x, y)]
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, eval_strategy="epoch")
Trainer(Net(), args, train_dataset=rows[:1500], eval_dataset=rows[1500:]).train()
