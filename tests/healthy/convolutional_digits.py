"""Digits as pictures through a hand-written CNN with batch norm and dropout."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
pictures, labels = load_digits(return_X_y=True)
pictures = (pictures / 16.0).reshape(-1, 1, 8, 8).astype("float32")
train_x, test_x, train_y, test_y = train_test_split(pictures, labels, stratify=labels, random_state=0)


class Digits(Dataset):
    def __init__(self, x, y):
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"pixel_values": self.x[i], "labels": self.y[i]}


class Cnn(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, classes))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, pixel_values, labels=None):
        logits = self.head(self.features(pixel_values))
        return (self.loss(logits, labels), logits) if labels is not None else (logits,)


trainer = Trainer(
    model=Cnn(),
    args=TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=64, num_train_epochs=4, eval_strategy="epoch"),
    train_dataset=Digits(train_x, train_y),
    eval_dataset=Digits(test_x, test_y),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
