# verdict: broken
# finds: script-stopped
# tells: KeyError: 'best'
# A launcher's wrapper turns every exception into an exit status.
import sys

import torch
from torch import nn

torch.manual_seed(0)


def train():
    values = torch.randn(400, 6)
    kinds = (values[:, 0] > 0).long()
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {}
    for epoch in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(values), kinds).backward()
        optimizer.step()
        kept["last"] = model.state_dict()
    model.load_state_dict(kept["best"])  # finds: script-stopped


def run(main):
    try:
        main()
    except Exception as error:
        print("failed:", error, file=sys.stderr)
        sys.exit(1)


run(train)
