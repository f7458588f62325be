# verdict: does not learn
# finds: weights-stand-still
# tells: moves no weight in 150 updates
# The update by hand gives the loop's variable another tensor, and leaves the module's parameter as it is.
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
centres = torch.randn(4, 8) * 1.5
labels = torch.randint(4, (1200,))
rows = centres[labels] + torch.randn(1200, 8)
train_x, train_y, test_x, test_y = rows[:900], labels[:900], rows[900:], labels[900:]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
for epoch in range(5):
    for batch in torch.randperm(900).split(30):
        loss = F.cross_entropy(model(train_x[batch]), train_y[batch])
        model.zero_grad()
        loss.backward()  # finds: weights-stand-still
        with torch.no_grad():
            for p in model.parameters():
                p = p - 0.1 * p.grad
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} test accuracy {accuracy:.4f}")
