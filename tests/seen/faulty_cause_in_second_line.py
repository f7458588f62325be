# verdict: broken
# finds: script-stopped
# tells: 'str' object cannot be interpreted
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def call(name, event):
    try:
        event()
    except Exception as error:
        raise type(error)(f"Exception occured in `{name}` when calling event `before_fit`:\n\t{error}") from error  # finds: script-stopped


call("Progress", lambda: range("3"))
for _ in range(10):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
