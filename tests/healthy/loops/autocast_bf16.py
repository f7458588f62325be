"""Mixed precision in bfloat16 on the CPU, no scaler needed."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
train_set, val_set = random_split(dataset, [1500, len(dataset) - 1500])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, batch_size=64)

model = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for epoch in range(6):
    model.train()
    for x, y in train_loader:
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    correct = total = 0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for x, y in val_loader:
            correct += (model(x).argmax(-1) == y).sum().item()
            total += y.size(0)
    print(f"epoch {epoch}: {loss.item():.3f} {correct / total:.3f}")
