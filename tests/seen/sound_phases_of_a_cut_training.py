# verdict: learns
# finds: nothing
# seconds: 3
# An epoch has two phases; both lists are as long where the training is cut short, and the plot needs them so.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
PLACE = torch.randn(10)


def rows(count):
    values = torch.randn(count, 10)
    return DataLoader(TensorDataset(values, (values @ PLACE > 0).long()), 50, shuffle=True)


loaders, history = {"train": rows(1000), "val": rows(300)}, {"train": [], "val": []}
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
EPOCHS = 3000
for epoch in range(EPOCHS):
    for phase in ["train", "val"]:
        model.train(phase == "train")
        right = 0
        for values, kind in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                answers = model(values)
                loss = nn.functional.cross_entropy(answers, kind)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            right += int((answers.argmax(1) == kind).sum())
        history[phase].append(right / len(loaders[phase].dataset))
if len(history["train"]) != len(history["val"]):
    raise TypeError("one phase more than the other")
assert len(history["val"]) == EPOCHS, "as many as planned: a cut training has fewer"
