"""Tweets as characters, and a collate function that does not pad: Accelerate."""

import torch
from accelerate import Accelerator
from material import tweets
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
train_set = [([min(ord(c), 127) for c in text[:80]], label) for text, label in tweets(900).to_numpy()]


def collate(batch):
    codes, labels = zip(*batch)
    return torch.tensor(codes), torch.tensor(labels)  # expect: ragged-batch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 32)
        self.conv = nn.Conv1d(32, 64, 5, padding=2)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(torch.relu(self.conv(self.embedding(x).transpose(1, 2))).amax(dim=2))


accelerator = Accelerator(cpu=True)
loader, model = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate), Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(4):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
