# verdict: learns
# finds: nothing
# tells: its own test accuracy is
# One function trains with an optimizer and measures without one; it is called again after the training, for the test set.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
WEIGHTS = torch.randn(12, 3)


def rows(count):
    values = torch.randn(count, 12)
    return TensorDataset(values, (values @ WEIGHTS).argmax(1))


train, valid, test = DataLoader(rows(900), 30, shuffle=True), DataLoader(rows(300), 100), DataLoader(rows(400), 100)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def epoch(loader, optimizer=None):
    model.train(optimizer is not None)
    right = count = 0
    with torch.set_grad_enabled(optimizer is not None):
        for values, labels in loader:
            logits = model(values)
            loss = nn.functional.cross_entropy(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            right += (logits.argmax(1) == labels).sum().item()
            count += len(labels)
    return right / count


for number in range(8):
    print("epoch", number, "train", round(epoch(train, optimizer), 3), "valid", round(epoch(valid), 3))
print("test accuracy", round(epoch(test), 3))
