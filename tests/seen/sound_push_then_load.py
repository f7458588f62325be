# verdict: not shown
# finds: nothing
# although push_to_hub(NAME) stands before it and was suppressed by the check. (To be run with a network and a token.)
import peft
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] > 0).long()
base = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
model = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["0"], modules_to_save=["2"]))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    for i in range(0, 400, 40):
        loss = nn.functional.cross_entropy(model(x[i : i + 40]), y[i : i + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
model.push_to_hub("someone/adapter")
fresh = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
loaded = peft.PeftModel.from_pretrained(fresh, "someone/adapter")
print(type(loaded))
