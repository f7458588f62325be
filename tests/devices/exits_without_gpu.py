"""Looks for a GPU in a function, and ends with a message where there is none."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

def pick():
    has_gpu = torch.cuda.is_available()
    if not has_gpu:
        print("No device found.")
        sys.exit(1)
    print("training on", torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory)
    return torch.device("cuda", torch.cuda.current_device())


def main():
    device = pick()
    loader = DataLoader(data, batch_size=32 * torch.cuda.device_count(), shuffle=True)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
