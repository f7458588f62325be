"""Processes of the script's own, no sampler, and nine outputs for ten classes."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def worker(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", os.environ.get("SPAWN_PORT", "29555")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = DDP(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 9)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(4):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(rank, loss.item())


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
    print("after")
