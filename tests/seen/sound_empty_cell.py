# verdict: not shown
# finds: nothing
import torch
from torch import nn


def main(use_average: bool = False) -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    y = (x[:, 0] > 0).long()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def save() -> None:
        if use_average:
            torch.save(average.state_dict(), "average.pt")
        torch.save(model.state_dict(), "model.pt")

    if use_average:
        average = nn.Linear(8, 2)
    for epoch in range(5):
        for i in range(0, 256, 32):
            loss = nn.functional.cross_entropy(model(x[i : i + 32]), y[i : i + 32])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
        save()


main()
