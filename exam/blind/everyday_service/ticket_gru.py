# Routing support tickets to a team with a GRU (variable length, packed)
import random
from collections import Counter

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED = 5
random.seed(SEED)
torch.manual_seed(SEED)

TEAMS = ["billing", "network", "hardware", "account"]
KEYWORDS = {
    "billing": "invoice refund charge payment card receipt price vat".split(),
    "network": "wifi router latency packet vpn dns outage signal".split(),
    "hardware": "laptop screen keyboard battery fan charger dock mouse".split(),
    "account": "password login locked username reset email access token".split(),
}
FILLER = ("hello team please could you help me with this since yesterday my the a is was it "
          "again still very urgent thanks best regards i we when then after before not working").split()


def make_ticket():
    team = random.choice(TEAMS)
    words = random.choices(FILLER, k=random.randint(4, 22))
    for _ in range(random.randint(1, 3)):
        words.insert(random.randrange(len(words) + 1), random.choice(KEYWORDS[team]))
    if random.random() < 0.3:
        other = random.choice(TEAMS)
        words.insert(0, random.choice(KEYWORDS[other]))
    return " ".join(words), team


corpus = [make_ticket() for _ in range(2400)]
train_rows, test_rows = corpus[:2000], corpus[2000:]

counts = Counter(w for text, _ in train_rows for w in text.split())
vocab = {"<pad>": 0, "<unk>": 1}
for w, c in counts.most_common():
    if c >= 2:
        vocab[w] = len(vocab)


class Tickets(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, team = self.rows[i]
        return torch.tensor([vocab.get(w, 1) for w in text.split()]), TEAMS.index(team)


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels)


class TicketGRU(nn.Module):
    def __init__(self, vocab_size, emb=32, hidden=48, n_classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * hidden, n_classes)

    def forward(self, ids, lengths):
        lengths, order = lengths.sort(descending=True)
        emb = self.emb(ids[order])
        packed = pack_padded_sequence(emb, lengths.cpu(), batch_first=True)
        _, h = self.gru(packed)
        h = torch.cat([h[-2], h[-1]], dim=1)
        return self.fc(self.drop(h))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    running, seen = 0.0, 0
    for ids, lengths, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(ids, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(labels)
        seen += len(labels)
    return running / seen


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hit = n = 0
    for ids, lengths, labels in loader:
        hit += (model(ids, lengths).argmax(1) == labels).sum().item()
        n += len(labels)
    return hit / n


train_loader = DataLoader(Tickets(train_rows), batch_size=32, shuffle=True, collate_fn=collate)
test_loader = DataLoader(Tickets(test_rows), batch_size=100, collate_fn=collate)

model = TicketGRU(len(vocab))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    loss = train_one_epoch(model, train_loader, criterion, optimizer)
    print(f"epoch {epoch}  loss {loss:.4f}  test acc {evaluate(model, test_loader):.3f}")
print("test accuracy", round(evaluate(model, test_loader), 4))
