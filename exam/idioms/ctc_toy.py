# CTC: every symbol is held for two or three frames with noise; no alignment is given.
import torch
import torch.nn as nn

torch.manual_seed(4)
N_SYMBOLS, FRAMES, DIM = 5, 20, 12
codebook = torch.randn(N_SYMBOLS + 1, DIM)  # row 0 is silence


def make_batch(n):
    x = torch.zeros(n, FRAMES, DIM)
    targets, target_lengths = [], []
    for i in range(n):
        length = int(torch.randint(2, 5, (1,)))
        seq = torch.randint(1, N_SYMBOLS + 1, (length,))
        frames = []
        for s in seq:
            frames += [int(s)] * int(torch.randint(2, 4, (1,))) + [0]
        frames += [0] * (FRAMES - len(frames))
        x[i] = codebook[torch.tensor(frames)]
        targets.append(seq)
        target_lengths.append(length)
    return x + 0.3 * torch.randn_like(x), torch.cat(targets), torch.tensor(target_lengths)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(DIM, 32, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(64, N_SYMBOLS + 1)

    def forward(self, x):
        return self.fc(self.gru(x)[0]).log_softmax(-1)


def greedy_decode(log_probs):
    out = []
    for row in log_probs.argmax(-1).tolist():
        out.append([s for k, s in enumerate(row) if s != 0 and (k == 0 or row[k - 1] != s)])
    return out


@torch.no_grad()
def exact_match(model, n=100):
    model.eval()
    x, targets, lengths = make_batch(n)
    decoded = greedy_decode(model(x))
    model.train()
    return sum(d == t.tolist() for d, t in zip(decoded, targets.split(lengths.tolist()))) / n


model = Recognizer()
ctc_loss = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(151):
    x, targets, target_lengths = make_batch(20)
    log_probs = model(x).permute(1, 0, 2)  # (T, N, C)
    input_lengths = torch.full((20,), FRAMES)
    loss = ctc_loss(log_probs, targets, input_lengths, target_lengths)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.3f} exact match {exact_match(model):.2f}")
