# verdict: learns
# finds: nothing
# seconds: 3
# An object of the script says with a KeyError, not with an AttributeError, that it lacks something; the training is cut short.
import torch
from torch import nn

torch.manual_seed(0)


class Settings(dict):
    def __getattr__(self, name):
        return self[name]


settings = Settings(epochs=200_000, rate=0.05)
values = torch.randn(400, 6)
kinds = (values[:, 0] + values[:, 1] > 0).long()
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=settings.rate)
for epoch in range(settings.epochs):
    with torch.no_grad():
        if epoch % 100 == 0:
            answers = model(values[300:]).argmax(1)
            print(epoch, "test accuracy", (answers == kinds[300:]).float().mean().item())
    nn.functional.cross_entropy(model(values[:300]), kinds[:300]).backward()
    optimizer.step()
    optimizer.zero_grad()
