"""The model ends in a softmax and CrossEntropyLoss applies another."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class DigitClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.dropout = nn.Dropout(0.1)
        self.fc2 = nn.Linear(48, 10)
        self.softmax = nn.Softmax(dim=1)  # expect: double-activation

    def forward(self, x):
        x = self.dropout(torch.relu(self.fc1(x)))
        return self.softmax(self.fc2(x))


def train(model, loader, optimizer, criterion, epochs=8):
    model.train()
    for epoch in range(1, epochs + 1):
        running = 0.0
        for i, data in enumerate(loader, 0):
            inputs, labels = data
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"[{epoch}] loss: {running / len(loader):.3f}")


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    train_set = TensorDataset(torch.tensor(X_train).float(), torch.tensor(y_train))
    model = DigitClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    train(model, DataLoader(train_set, batch_size=32, shuffle=True), optimizer, nn.CrossEntropyLoss())
    model.eval()
    with torch.no_grad():
        predicted = model(torch.tensor(X_test).float()).argmax(1)
    print("accuracy", (predicted == torch.tensor(y_test)).float().mean().item())


if __name__ == "__main__":
    main()
