import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm
from sklearn.datasets import load_digits

torch.manual_seed(7)

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
labels = torch.tensor(digits.target)
perm = torch.randperm(len(images))
train_idx, test_idx = perm[:1400], perm[1400:]
trainloader = DataLoader(TensorDataset(images[train_idx], labels[train_idx]), batch_size=64, shuffle=True)
testloader = DataLoader(TensorDataset(images[test_idx], labels[test_idx]), batch_size=128)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

epoch_losses = []
for epoch in range(1, 9):
    net.train()
    epoch_loss = 0.0
    with tqdm(trainloader, unit="batch") as tepoch:
        for data, target in tepoch:
            tepoch.set_description(f"Epoch {epoch}")
            optimizer.zero_grad()
            output = net(data)
            predictions = output.argmax(dim=1)
            loss = criterion(output, target)
            correct = (predictions == target).sum().item()
            accuracy = correct / len(data)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
            tepoch.set_postfix(loss=loss.item(), accuracy=100.0 * accuracy)
    epoch_losses.append(epoch_loss / len(trainloader))

net.eval()
hits = 0
with torch.no_grad():
    for data, target in testloader:
        hits += (net(data).argmax(1) == target).sum().item()
print("first loss", round(epoch_losses[0], 4), "last loss", round(epoch_losses[-1], 4))
print("test accuracy", round(hits / len(test_idx), 4))
