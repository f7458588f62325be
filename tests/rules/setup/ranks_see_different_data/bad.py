"""Each process draws its own split, because each is seeded by its number; Accelerate then shares out row numbers."""

import torch
from accelerate import Accelerator, debug_launcher
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(42, device_specific=True)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
    train, _ = random_split(data, [1500, 297])  # expect: ranks-see-different-data
    loader = DataLoader(train, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(5):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(epoch, loss.item())


debug_launcher(main, num_processes=2)
