"""Tweets as characters, and a collate function that does not pad: Lightning."""

import lightning as L
import torch
from material import tweets
from torch import nn
from torch.utils.data import DataLoader

L.seed_everything(0)
train_set = [([min(ord(c), 127) for c in text[:80]], label) for text, label in tweets(900).to_numpy()]


def collate(batch):
    codes, labels = zip(*batch)
    return torch.tensor(codes), torch.tensor(labels)  # expect: ragged-batch


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 32)
        self.conv = nn.Conv1d(32, 64, 5, padding=2)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(torch.relu(self.conv(self.embedding(x).transpose(1, 2))).amax(dim=2))

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        return nn.functional.cross_entropy(self(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = L.Trainer(max_epochs=4, accelerator="cpu", **quiet)
trainer.fit(Net(), DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate))
