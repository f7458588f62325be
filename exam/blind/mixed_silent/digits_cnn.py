# Simple CNN on the sklearn digits, following the course notes (week 3)
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

BATCH_SIZE = 32
EPOCHS = 12
LR = 0.02

digits = load_digits()
images = digits.images.astype("float32")[:, None] / 16.0
labels = digits.target.astype("int64")
x_tr, x_te, y_tr, y_te = train_test_split(
    images, labels, test_size=0.25, random_state=0, stratify=labels)

train_loader = DataLoader(
    TensorDataset(torch.from_numpy(x_tr), torch.from_numpy(y_tr)),
    batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(
    TensorDataset(torch.from_numpy(x_te), torch.from_numpy(y_te)),
    batch_size=256)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9)
# halve the learning rate every 4 epochs
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)


def evaluate(loader):
    net.eval()
    correct, total, loss_sum = 0, 0, 0.0
    with torch.no_grad():
        for xb, yb in loader:
            out = net(xb)
            loss_sum += F.cross_entropy(out, yb, reduction="sum").item()
            correct += (out.argmax(1) == yb).sum().item()
            total += len(yb)
    return loss_sum / total, correct / total


for epoch in range(EPOCHS):
    net.train()
    running = 0.0
    for i, (xb, yb) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    val_loss, val_acc = evaluate(test_loader)
    print(f"epoch {epoch + 1:2d}  train loss {running / len(train_loader):.4f}  "
          f"test loss {val_loss:.4f}  test acc {val_acc:.4f}")

print("Finished Training")
print("Accuracy on the test images: %.2f %%" % (100 * evaluate(test_loader)[1]))
