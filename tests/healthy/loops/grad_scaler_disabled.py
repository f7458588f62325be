"""A script for the GPU run on a CPU: autocast and GradScaler switched off by a flag, tqdm around the loader."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

torch.manual_seed(0)
use_amp = torch.cuda.is_available()
device = torch.device("cuda" if use_amp else "cpu")
features, target = load_wine(return_X_y=True)
x_tr, x_te, y_tr, y_te = train_test_split(features, target, stratify=target, random_state=0)
scaler_x = StandardScaler().fit(x_tr)
train_ds = TensorDataset(torch.tensor(scaler_x.transform(x_tr)).float(), torch.tensor(y_tr))
x_te, y_te = torch.tensor(scaler_x.transform(x_te)).float().to(device), torch.tensor(y_te).to(device)

model = nn.Sequential(nn.Linear(13, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 3)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler(device.type, enabled=use_amp)
train_loader = DataLoader(train_ds, batch_size=16, shuffle=True, drop_last=True, pin_memory=use_amp)

for epoch in range(10):
    model.train()
    progress = tqdm(train_loader, desc=f"epoch {epoch}", leave=False)
    for data, labels in progress:
        data, labels = data.to(device), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device.type, enabled=use_amp):
            loss = criterion(model(data), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        progress.set_postfix(loss=f"{loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_te).argmax(1) == y_te).float().mean().item()
    print(f"epoch {epoch} accuracy {accuracy:.3f}")
