import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        return self.fc(x.flatten(1))


def run(lr=0.02, epochs=6):
    fabric = L.Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(7)
    digits = load_digits()
    ds = TensorDataset(torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1), torch.tensor(digits.target))
    train_ds, test_ds = random_split(ds, [1400, len(ds) - 1400], generator=torch.Generator().manual_seed(0))
    train_loader, test_loader = fabric.setup_dataloaders(DataLoader(train_ds, batch_size=50, shuffle=True), DataLoader(test_ds, batch_size=200))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model, optimizer = fabric.setup(model, optimizer)
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for batch_idx, (data, target) in enumerate(train_loader):
            optimizer.zero_grad()
            output = model(data)
            loss = F.cross_entropy(output, target)
            fabric.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        correct = 0
        with torch.no_grad():
            for data, target in test_loader:
                correct += (model(data).argmax(1) == target).sum().item()
        fabric.print(f"Epoch {epoch} loss {sum(losses) / len(losses):.4f} test accuracy {correct / len(test_ds):.4f}")


if __name__ == "__main__":
    run()
