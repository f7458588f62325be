"""A small transformer encoder on digit rows; linear warm-up and decay with LambdaLR, stepped per batch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
rows = torch.tensor(digits.images / 16, dtype=torch.float32)
target = torch.tensor(digits.target)
train = DataLoader(TensorDataset(rows[:1500], target[:1500]), batch_size=50, shuffle=True)


class RowTransformer(nn.Module):
    """Each picture is a sequence of eight rows."""

    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, 8, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=96, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.classify = nn.Linear(width, 10)

    def forward(self, x):
        return self.classify(self.encoder(self.embed(x) + self.position).mean(dim=1))


model = RowTransformer()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
epochs = 6
total_steps = epochs * len(train)
warmup = total_steps // 10
scheduler = LambdaLR(optimizer, lambda step: min((step + 1) / warmup, max(0.0, (total_steps - step) / (total_steps - warmup))))
criterion = nn.CrossEntropyLoss()

for epoch in range(epochs):
    model.train()
    for x, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(x), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(rows[1500:]).argmax(-1) == target[1500:]).float().mean().item()
    print(f"epoch {epoch}: accuracy {accuracy:.3f}")
