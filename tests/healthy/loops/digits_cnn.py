"""A small CNN on sklearn's digits: DataLoader, Adam, accuracy on held-out data after each epoch."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x_train, x_test, y_train, y_test = train_test_split(
    digits.images / 16.0, digits.target, test_size=0.2, stratify=digits.target, random_state=0
)


def as_dataset(x, y):
    return TensorDataset(torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y))


train_loader = DataLoader(as_dataset(x_train, y_train), batch_size=64, shuffle=True)
test_loader = DataLoader(as_dataset(x_test, y_test), batch_size=256)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(self.dropout(torch.flatten(x, 1)))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            predicted = model(inputs.to(device)).argmax(dim=1)
            correct += (predicted == labels.to(device)).sum().item()
    print(f"epoch {epoch}: loss {running_loss / len(train_loader):.3f}, accuracy {correct / len(test_loader.dataset):.3f}")
