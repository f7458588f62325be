"""Knowledge distillation (big MLP -> small MLP) with an EMA copy of the student."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(33)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32)
y = torch.tensor(y)
i_tr, i_te = train_test_split(range(len(y)), test_size=0.3, random_state=33, stratify=y)
loader = DataLoader(TensorDataset(X[i_tr], y[i_tr]), batch_size=64, shuffle=True, drop_last=True)
X_te, y_te = X[i_te], y[i_te]


def mlp(width, drop):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(drop),
                         nn.Linear(width, width), nn.ReLU(), nn.Dropout(drop),
                         nn.Linear(width, 10))


@torch.inference_mode()
def accuracy(net):
    was = net.training
    net.eval()
    acc = (net(X_te).argmax(-1) == y_te).float().mean().item()
    net.train(was)
    return acc


teacher = mlp(256, 0.4)
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(15):
    for xb, yb in loader:
        loss = F.cross_entropy(teacher(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
teacher.eval().requires_grad_(False)
print(f"teacher: {accuracy(teacher):.4f}")


def train_student(use_teacher, temperature=3.0, alpha=0.7, epochs=50, decay=0.98):
    torch.manual_seed(1)
    student = mlp(24, 0.0)
    ema = copy.deepcopy(student).requires_grad_(False)
    opt = torch.optim.Adam(student.parameters(), lr=4e-3)
    step = 0
    for ep in range(epochs):
        for xb, yb in loader:
            logits = student(xb)
            loss = F.cross_entropy(logits, yb)
            if use_teacher:
                with torch.no_grad():
                    target = F.log_softmax(teacher(xb) / temperature, dim=-1)
                kd = F.kl_div(F.log_softmax(logits / temperature, dim=-1), target,
                              reduction="batchmean", log_target=True) * temperature ** 2
                loss = alpha * kd + (1 - alpha) * loss
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            d = min(decay, (1 + step) / (10 + step))
            with torch.no_grad():
                for pe, ps in zip(ema.parameters(), student.parameters()):
                    pe.lerp_(ps, 1 - d)
        if ep % 10 == 9:
            print(f"   epoch {ep + 1:2d} loss {loss.item():.4f} student {accuracy(student):.4f} ema {accuracy(ema):.4f}")
    return ema


print("student alone")
plain = train_student(False)
print("student with teacher")
kd = train_student(True)
print(f"final: alone {accuracy(plain):.4f}  distilled {accuracy(kd):.4f}")
