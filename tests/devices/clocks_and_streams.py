"""Events, streams, memory and names, as a script that measures itself has them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

device = torch.device("cuda")
print(torch.cuda.get_device_name(0), torch.cuda.get_device_capability(), torch.cuda.mem_get_info())
loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
side = torch.cuda.Stream()
torch.cuda.reset_peak_memory_stats()

for epoch in range(3):
    start.record()
    for x, y in loader:
        with torch.cuda.stream(side):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        torch.cuda.nvtx.range_push("step")
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        torch.cuda.nvtx.range_pop()
    end.record()
    torch.cuda.synchronize()
    print(start.elapsed_time(end), torch.cuda.memory_allocated(), torch.cuda.memory_summary())
    torch.cuda.empty_cache()
