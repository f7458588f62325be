# verdict: does not learn
# finds: held-out-at-constant
# tells: 300 evaluation rows
# The rows are shuffled, and their labels are not.
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
centres = torch.randn(4, 8) * 1.5
labels = torch.randint(4, (1200,))
rows = centres[labels] + torch.randn(1200, 8)
rows = rows[torch.randperm(1200)]
train_x, train_y, test_x, test_y = rows[:900], labels[:900], rows[900:], labels[900:]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
params = {k: v.detach().clone() for k, v in model.named_parameters()}


def loss_fn(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x,)), y)


for epoch in range(5):
    for batch in torch.randperm(900).split(30):
        grads = grad(loss_fn)(params, train_x[batch], train_y[batch])
        params = {k: p - 0.1 * grads[k] for k, p in params.items()}
    with torch.no_grad():
        logits = functional_call(model, params, (test_x,))
    print(f"epoch {epoch} test accuracy {(logits.argmax(1) == test_y).float().mean():.4f}")
