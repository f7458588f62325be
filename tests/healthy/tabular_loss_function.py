"""Wine through an MLP whose loss is handed to the Trainer as compute_loss_func."""

import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed
from transformers.modeling_outputs import SequenceClassifierOutput

set_seed(1)
x, y = load_wine(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.25, stratify=y, random_state=0)
scaler = StandardScaler().fit(train_x)


def as_dataset(x, y):
    return Dataset.from_dict({"features": scaler.transform(x).astype("float32").tolist(), "labels": y.tolist()})


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(13, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 3))

    def forward(self, features, labels=None):
        return SequenceClassifierOutput(logits=self.net(features))


def loss_function(outputs, labels, num_items_in_batch=None):
    reduction = "sum" if num_items_in_batch is not None else "mean"
    loss = nn.functional.cross_entropy(outputs.logits, labels, reduction=reduction)
    return loss / num_items_in_batch if num_items_in_batch is not None else loss


trainer = Trainer(
    model=Mlp(),
    args=TrainingArguments(
        **QUIET, learning_rate=1e-2, per_device_train_batch_size=16, num_train_epochs=15, eval_strategy="epoch",
        gradient_accumulation_steps=2,
    ),
    train_dataset=as_dataset(train_x, train_y),
    eval_dataset=as_dataset(test_x, test_y),
    compute_loss_func=loss_function,
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
