"""Digits shifted and noised at random by the data set's own generator; the collator mixes pairs of them."""

import numpy as np
import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
pictures, labels = load_digits(return_X_y=True)
pictures = (pictures / 16).reshape(-1, 8, 8).astype("float32")
mixing = np.random.default_rng(5)


class Augmented(Dataset):
    def __init__(self, chosen, augment):
        self.chosen, self.augment, self.random = chosen, augment, np.random.default_rng(1)

    def __len__(self):
        return len(self.chosen)

    def __getitem__(self, i):
        picture = pictures[self.chosen[i]]
        if self.augment:
            picture = np.roll(picture, self.random.integers(-1, 2), axis=1) + 0.05 * self.random.standard_normal((8, 8))
        return {"pixels": torch.tensor(picture, dtype=torch.float32), "labels": int(labels[self.chosen[i]])}


def collate(items):
    pixels, labels = torch.stack([i["pixels"] for i in items]), torch.tensor([i["labels"] for i in items])
    share = float(mixing.beta(8, 0.5))
    return {"pixels": share * pixels + (1 - share) * pixels.flip(0), "labels": labels}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, pixels, labels=None):
        logits = self.net(pixels)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


order = np.random.default_rng(0).permutation(len(labels))
trainer = Trainer(
    model=Net(),
    args=TrainingArguments(**QUIET, learning_rate=5e-3, per_device_train_batch_size=64, num_train_epochs=5, eval_strategy="no"),
    train_dataset=Augmented(order[300:], augment=True),
    eval_dataset=Augmented(order[:300], augment=False),
    data_collator=collate,
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
