"""Accelerate with accumulate() and a schedule that was prepared too, on the breast cancer table."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_scheduler

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
X, y = load_breast_cancer(return_X_y=True)
order = torch.randperm(len(y))
X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)[order]
y = torch.tensor(y, dtype=torch.float32)[order]
train_dl = DataLoader(TensorDataset(X[:448], y[:448]), batch_size=8, shuffle=True)
eval_dl = DataLoader(TensorDataset(X[448:], y[448:]), batch_size=32)

model = torch.nn.Sequential(torch.nn.Linear(30, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
epochs = 10
updates = epochs * len(train_dl) // 4
scheduler = get_scheduler("cosine", optimizer=optimizer, num_warmup_steps=updates // 20, num_training_steps=updates)
model, optimizer, train_dl, eval_dl, scheduler = accelerator.prepare(model, optimizer, train_dl, eval_dl, scheduler)
loss_function = torch.nn.BCEWithLogitsLoss()

for epoch in range(epochs):
    model.train()
    for features, target in train_dl:
        with accelerator.accumulate(model):
            loss = loss_function(model(features).squeeze(-1), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    hits = []
    with torch.inference_mode():
        for features, target in eval_dl:
            guess = (model(features).squeeze(-1) > 0).float()
            hits.append(accelerator.gather_for_metrics(guess == target))
    accelerator.print(epoch, loss.item(), torch.cat(hits).float().mean().item(), scheduler.get_last_lr())
