"""Train a teacher, then distil it into a small student."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


def mlp(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 10))


def test(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, y in loader:
            hits, n = hits + (model(x).argmax(1) == y).sum().item(), n + len(y)
    return hits / n


def train_teacher(teacher, loader, epochs):
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for epoch in range(epochs):
        teacher.train()
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(teacher(x), y)
            loss.backward()
            opt.step()
    return loss.item()


def train_knowledge_distillation(teacher, student, loader, test_loader, epochs, T=3.0, alpha=0.9):
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    teacher.eval()
    for epoch in range(epochs):
        student.train()
        running_loss = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            soft_targets = F.softmax(teacher_logits / T, dim=-1)
            soft_prob = F.log_softmax(student_logits / T, dim=-1)
            distill = F.kl_div(soft_prob, soft_targets, reduction="batchmean") * T ** 2
            hard = F.cross_entropy(student_logits, labels)
            loss = alpha * distill + (1 - alpha) * hard
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        if epoch % 4 == 0 or epoch == epochs - 1:
            print(f"student epoch {epoch} loss {running_loss / len(loader):.4f} test accuracy {test(student, test_loader):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X_tr, X_te, y_tr, y_te = train_test_split(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y), test_size=0.3, random_state=0)
    train_loader = DataLoader(TensorDataset(X_tr, y_tr), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(X_te, y_te), batch_size=300)
    teacher, student = mlp(256), mlp(12)
    print(f"teacher loss {train_teacher(teacher, train_loader, 15):.4f} test accuracy {test(teacher, test_loader):.4f}")
    train_knowledge_distillation(teacher, student, train_loader, test_loader, 16)
