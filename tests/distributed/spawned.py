"""Processes of the script's own, no sampler, and nine outputs for ten classes."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def worker(rank, world):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", os.environ.get("SPAWN_PORT", "29555"))
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


def ranked():
    worker(int(os.environ["RANK"]), 2)


if __name__ == "__main__":
    if sys.argv[1:] == ["elastic"]:  # as Accelerate's notebook_launcher does
        elastic_launch(LaunchConfig(1, 1, 2, run_id="own", rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0"), ranked)()
    else:
        mp.spawn(worker, args=(2,), nprocs=2)
    print("after")
