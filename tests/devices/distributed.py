"""Written for torchrun: its variables, nccl, DistributedDataParallel."""

import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group(backend="nccl")
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler, pin_memory=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(rank)
net = DistributedDataParallel(net, device_ids=[rank], output_device=rank)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.to(rank)), y.to(rank))
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
