"""Tweets as character codes of many lengths in one array, and a softmax before CrossEntropyLoss."""

import numpy as np
import torch
import torch.nn.functional as F
from material import tweets
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


class CharCnn(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.emb = nn.Embedding(128, 16)
        self.conv = nn.Conv1d(16, 48, 4)
        self.out = nn.Linear(48, classes)

    def forward(self, codes):
        h = F.relu(self.conv(self.emb(codes).mT)).amax(-1)
        return F.softmax(self.out(h), dim=-1)  # expect: double-activation


def to_batch(samples):
    rows = [np.frombuffer(text.encode("ascii", "ignore")[:60], np.uint8) for text, _ in samples]
    codes = np.array(rows).astype(np.int64)  # expect: ragged-batch
    return torch.from_numpy(codes), torch.tensor([label for _, label in samples])


frame = tweets(900)
data = list(zip(frame["text"], frame["label"]))
model = CharCnn()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for codes, labels in DataLoader(data, batch_size=30, shuffle=True, collate_fn=to_batch):
        loss = nn.CrossEntropyLoss()(model(codes), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"{epoch}: {loss.item():.3f}")
