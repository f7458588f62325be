# char-rnn: learn little sentences, print a sample after each epoch
import random
import torch
import torch.nn as nn

random.seed(5)
torch.manual_seed(5)
subjects, verbs, places = ["the cat", "a dog", "my horse", "our bird"], ["sleeps", "runs", "sits", "waits"], ["at home", "in town", "by the sea", "under trees"]
text = "".join(f"{random.choice(subjects)} {random.choice(verbs)} {random.choice(places)}.\n" for _ in range(500))
words = set(text.replace(".", " ").split())
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])

seq_len, batch = 48, 24


def batches():
    starts = list(range(0, len(data) - seq_len - 1, seq_len))
    random.shuffle(starts)
    for k in range(0, len(starts) - batch + 1, batch):
        chunk = starts[k:k + batch]
        x = torch.stack([data[s:s + seq_len] for s in chunk])
        y = torch.stack([data[s + 1:s + seq_len + 1] for s in chunk])
        yield x, y


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, 24)
        self.rnn = nn.LSTM(24, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        h, state = self.rnn(self.embed(x), state)
        return self.out(h), state


@torch.no_grad()
def sample(model, n=160, temperature=0.7):
    model.eval()
    x, state, out = torch.tensor([[stoi["\n"]]]), None, []
    for _ in range(n):
        logits, state = model(x, state)
        x = torch.multinomial((logits[:, -1] / temperature).softmax(-1), 1)
        out.append(chars[x.item()])
    model.train()
    return "".join(out)


model = CharRNN(len(chars))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
first = None
for epoch in range(12):
    total, count = 0.0, 0
    for x, y in batches():
        optimizer.zero_grad()
        logits, _ = model(x)
        loss = criterion(logits.reshape(-1, len(chars)), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, count = total + loss.item(), count + 1
        first = loss.item() if first is None else first
    s = sample(model)
    made = s.replace(".", " ").split()
    valid = sum(w in words for w in made) / max(len(made), 1)
    print(f"epoch {epoch} loss {total / count:.3f} real words {valid:.2f} | {s[:40]!r}")
print(f"first loss {first:.3f} last loss {total / count:.3f} share of real words {valid:.2f}")
