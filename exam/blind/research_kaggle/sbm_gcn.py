"""Semi-supervised node classification on a stochastic block model.

A dense two-layer GCN; only a handful of nodes per class carry labels, the loss
is masked to these. Early stopping on the validation nodes.
"""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_graph(n_per=180, k=4, p_in=0.035, p_out=0.006, d=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k), n_per)
    y = y[rng.permutation(len(y))]
    prob = np.where(y[:, None] == y[None, :], p_in, p_out)
    upper = np.triu(rng.random(prob.shape) < prob, 1)
    adj = (upper | upper.T).astype(np.float32)
    centers = rng.normal(0, 1, (k, d))
    feats = 0.35 * centers[y] + rng.normal(0, 1, (len(y), d))
    return torch.from_numpy(adj), torch.tensor(feats, dtype=torch.float32), torch.from_numpy(y)


def normalized_adjacency(adj):
    a = adj + torch.eye(len(adj))
    inv_sqrt = a.sum(1).rsqrt()
    return (inv_sqrt[:, None] * a * inv_sqrt[None, :]).to_sparse()


def split_masks(y, per_class=12, n_val=150, seed=1):
    g = torch.Generator().manual_seed(seed)
    perm = torch.randperm(len(y), generator=g)
    train = torch.zeros(len(y), dtype=torch.bool)
    for c in y.unique():
        train[perm[y[perm] == c][:per_class]] = True
    rest = perm[~train[perm]]
    val = torch.zeros_like(train)
    val[rest[:n_val]] = True
    return train, val, ~(train | val)


class GraphConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, a_hat, h):
        return torch.sparse.mm(a_hat, self.lin(h)) + self.bias


class GCN(nn.Module):
    def __init__(self, d_in, hidden, n_classes, p_drop=0.4):
        super().__init__()
        self.conv1 = GraphConv(d_in, hidden)
        self.conv2 = GraphConv(hidden, n_classes)
        self.p_drop = p_drop

    def forward(self, a_hat, x):
        h = F.dropout(x, self.p_drop, training=self.training)
        h = F.relu(self.conv1(a_hat, h))
        h = F.dropout(h, self.p_drop, training=self.training)
        return self.conv2(a_hat, h)


def masked_cross_entropy(logits, y, mask):
    per_node = F.cross_entropy(logits, y, reduction="none")
    m = mask.float()
    return (per_node * m).sum() / m.sum()


def masked_accuracy(logits, y, mask):
    return ((logits.argmax(1) == y) & mask).sum().item() / mask.sum().item()


def main():
    torch.manual_seed(0)
    adj, x, y = make_graph()
    a_hat = normalized_adjacency(adj)
    train_mask, val_mask, test_mask = split_masks(y)
    print(f"{len(y)} nodes, {int(adj.sum() / 2)} edges, {int(train_mask.sum())} labelled")

    model = GCN(x.size(1), 32, int(y.max()) + 1)
    opt = torch.optim.Adam([
        {"params": model.conv1.parameters(), "weight_decay": 5e-3},
        {"params": model.conv2.parameters(), "weight_decay": 0.0}], lr=1e-2)

    best_loss, best_state, patience, wait = float("inf"), None, 50, 0
    for epoch in range(400):
        model.train()
        loss = masked_cross_entropy(model(a_hat, x), y, train_mask)
        opt.zero_grad()
        loss.backward()
        opt.step()

        model.eval()
        with torch.no_grad():
            logits = model(a_hat, x)
            val_loss = masked_cross_entropy(logits, y, val_mask).item()
        if val_loss < best_loss:
            best_loss, wait = val_loss, 0
            best_state = copy.deepcopy(model.state_dict())
        else:
            wait += 1
            if wait >= patience:
                break
        if epoch % 50 == 0:
            print(f"epoch {epoch:3d} train {loss.item():.3f} val {val_loss:.3f} "
                  f"val acc {masked_accuracy(logits, y, val_mask):.3f}")

    model.load_state_dict(best_state)
    model.eval()
    with torch.no_grad():
        logits = model(a_hat, x)
    print(f"stopped at epoch {epoch}, test accuracy {masked_accuracy(logits, y, test_mask):.3f}")


if __name__ == "__main__":
    main()
