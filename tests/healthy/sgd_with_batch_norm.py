"""SGD at 0.1 with Nesterov momentum and a residual network with batch norm: old practice, and right."""

import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from transformers import Trainer, TrainingArguments, set_seed

set_seed(9)
x, y = load_digits(return_X_y=True)
data = Dataset.from_dict({"x": ((x - 8) / 8).astype("float32"), "labels": y}).with_format("torch")
data = data.train_test_split(test_size=0.2, seed=4)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return torch.relu(x + self.norm(self.inner(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), Block(64), Block(64))
        self.head = nn.Linear(64, 10)

    def forward(self, x, labels=None):
        logits = self.head(self.body(x))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
schedule = OneCycleLR(optimizer, max_lr=0.1, total_steps=4 * 23)
trainer = Trainer(
    model=model,
    args=TrainingArguments(**QUIET, per_device_train_batch_size=64, num_train_epochs=4, eval_strategy="epoch"),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    optimizers=(optimizer, schedule),
)
trainer.train()
print("RESULT", trainer.evaluate())
