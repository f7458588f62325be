"""Chapter 8 - knowledge distillation.

A wide teacher is trained first.  A tiny student then sees the soft targets of the
teacher and only 100 hard labels.
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

CFG = dict(
    teacher=dict(width=256, epochs=15, lr=1e-3),
    student=dict(width=12, epochs=30, lr=5e-3, temperature=4.0, alpha=0.9),
    batch_size=64,
    n_hard=100,
)


def mlp(width, dropout=0.0):
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(width, 10),
    )


def accuracy(model, x, y):
    model.eval()
    with torch.inference_mode():
        return (model(x).argmax(1) == y).float().mean().item()


def load(seed):
    data = load_digits()
    x = torch.tensor(data.data, dtype=torch.float32)
    y = torch.tensor(data.target, dtype=torch.long)
    tr, te = train_test_split(torch.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    mean, std = x[tr].mean(0), x[tr].std(0)
    std[std == 0] = 1.0      # a few pixels are always blank
    x = (x - mean) / std
    return x[tr], y[tr], x[te], y[te]


def train_teacher(x, y, x_te, y_te):
    cfg = CFG["teacher"]
    teacher = mlp(cfg["width"], dropout=0.3)
    opt = torch.optim.Adam(teacher.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        teacher.train()
        for xb, yb in DataLoader(TensorDataset(x, y), CFG["batch_size"], shuffle=True):
            loss = F.cross_entropy(teacher(xb), yb, label_smoothing=0.05)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
    print(f"teacher test accuracy {accuracy(teacher, x_te, y_te):.4f}")
    return teacher


def distillation_loss(student_logits, teacher_logits, labels, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=-1),
        F.softmax(teacher_logits / temperature, dim=-1),
        reduction="batchmean",
    ) * temperature ** 2
    if (labels != -100).any():
        hard = F.cross_entropy(student_logits, labels, ignore_index=-100)
    else:
        hard = student_logits.sum() * 0.0
    return alpha * soft + (1 - alpha) * hard


def train_student(x, y, x_te, y_te, teacher=None, seed=0):
    cfg = CFG["student"]
    torch.manual_seed(seed)
    student = mlp(cfg["width"])
    epochs = cfg["epochs"]
    labels = torch.full_like(y, -100)
    labels[: CFG["n_hard"]] = y[: CFG["n_hard"]]
    if teacher is None:
        x, labels = x[: CFG["n_hard"]], labels[: CFG["n_hard"]]
        epochs *= 10        # same number of updates, the set is smaller
    else:
        teacher.eval()
    loader = DataLoader(TensorDataset(x, labels), CFG["batch_size"], shuffle=True)
    opt = torch.optim.SGD(student.parameters(), lr=cfg["lr"] * 8, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg["lr"] * 8,
                                                total_steps=epochs * len(loader))
    for epoch in range(epochs):
        student.train()
        total = 0.0
        for xb, yb in loader:
            out = student(xb)
            if teacher is None:
                loss = F.cross_entropy(out, yb)
            else:
                with torch.no_grad():
                    t_out = teacher(xb)
                loss = distillation_loss(out, t_out, yb, cfg["temperature"], cfg["alpha"])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(student.parameters(), 2.0)
            opt.step()
            sched.step()
            total += loss.item() * len(xb)
        if (epoch + 1) % (epochs // 3) == 0:
            print(f"  epoch {epoch + 1:2d} loss {total / len(x):.4f} "
                  f"test {accuracy(student, x_te, y_te):.4f}")
    return accuracy(student, x_te, y_te)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = load(args.seed)
    teacher = train_teacher(*data)
    print("student, hard labels only")
    alone = train_student(*data, teacher=None, seed=args.seed)
    print("student, distilled")
    distilled = train_student(*data, teacher=teacher, seed=args.seed)
    print(f"FINAL student_alone={alone:.4f} student_distilled={distilled:.4f}")
