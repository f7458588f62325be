# verdict: not shown
# finds: nothing
# tells: training, 320 rows
# A module that holds the model and its loss is given texts and their labels: these are no features of the rows.
import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(128, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, texts):
        rows = torch.tensor([[ord(one) for one in text] for text in texts])
        return self.out(self.words(rows))[:, 0]


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, texts, labels):
        return nn.functional.binary_cross_entropy_with_logits(self.model(texts), labels)


texts = ["".join(chr(97 + int(one)) for one in torch.randint(0, 26, (8,))) for _ in range(400)]
labels = torch.tensor([sum(map(ord, text)) % 101 / 100 for text in texts])
rows = [(text, label) for text, label in zip(texts, labels)]
model = Reader()
loss = Loss(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    for a, b in torch.utils.data.DataLoader(rows[:320], 32, shuffle=True):
        optimizer.zero_grad()
        loss(a, b).backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.l1_loss(torch.sigmoid(model(texts[320:])), labels[320:]).item())
