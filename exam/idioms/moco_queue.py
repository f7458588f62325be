# Momentum contrast on clusters of vectors, with a queue as the memory bank
import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)
centers = torch.randn(200, 16)
queue_size, dim, m, T = 512, 32, 0.98, 0.1


def views(n):
    idx = torch.randint(0, 200, (n,))
    return centers[idx] + 0.35 * torch.randn(n, 16), centers[idx] + 0.35 * torch.randn(n, 16)


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(queue_size, dim), dim=1))
        self.ptr = 0

    @torch.no_grad()
    def _momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * m + q.data * (1 - m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        n = keys.shape[0]
        self.queue[self.ptr:self.ptr + n] = keys
        self.ptr = (self.ptr + n) % queue_size

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(1, keepdim=True)
        l_neg = q @ self.queue.clone().detach().T
        logits = torch.cat([l_pos, l_neg], dim=1) / T
        labels = torch.zeros(len(q), dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


@torch.no_grad()
def retrieval(model):
    a, b = centers + 0.35 * torch.randn_like(centers), centers + 0.35 * torch.randn_like(centers)
    za, zb = F.normalize(model.encoder_q(a), dim=1), F.normalize(model.encoder_q(b), dim=1)
    return ((za @ zb.T).argmax(1) == torch.arange(200)).float().mean().item()


model = MoCo()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
before = retrieval(model)
for step in range(601):
    logits, labels = model(*views(64))
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        acc = (logits.argmax(1) == 0).float().mean().item()
        print(f"step {step} loss {loss.item():.3f} positive on top {acc:.3f}")
print(f"retrieval of the other view: {before:.3f} -> {retrieval(model):.3f}")
