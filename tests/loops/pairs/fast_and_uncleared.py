"""Adam at a rate of 0.5, and gradients that nobody clears."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y))
loader = DataLoader(dataset, batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)  # expect: excessive-learning-rate

for epoch in range(3):
    running, correct = 0.0, 0
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        output = model(data)
        loss = criterion(output, target)
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
        running += loss.item() * len(data)
        correct += (output.argmax(1) == target).sum().item()
    print(f"epoch {epoch}: loss {running / len(dataset):.3f}, accuracy {correct / len(dataset):.3f}")
