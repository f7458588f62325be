"""Two phases: unsupervised pre-training on all digits, then a classifier with 300 labels."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())

    def forward(self, x):
        return self.net(x)


def pretrain(encoder, decoder, loader, epochs):
    ae_opt = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=2e-3)
    encoder.train(), decoder.train()
    for epoch in range(epochs):
        total = 0.0
        for (x,) in loader:
            loss = nn.functional.mse_loss(decoder(encoder(x)), x)
            ae_opt.zero_grad()
            loss.backward()
            ae_opt.step()
            total += loss.item()
        if epoch % 5 == 0 or epoch == epochs - 1:
            print(f"[pretrain] epoch {epoch} mse {total / len(loader):.4f}")


def finetune(encoder, head, loader, epochs):
    for p in encoder.parameters():
        p.requires_grad = False
    encoder.eval()
    head.train()
    opt = torch.optim.Adam(head.parameters(), lr=1e-2)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(head(encoder(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 10 == 0 or epoch == epochs - 1:
            print(f"[finetune] epoch {epoch} loss {total / len(loader):.4f}")


def main():
    torch.manual_seed(0)
    digits = load_digits()
    X = torch.tensor(digits.data / 16.0, dtype=torch.float32)
    y = torch.tensor(digits.target)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    encoder, decoder, head = Encoder(), nn.Linear(32, 64), nn.Linear(32, 10)
    pretrain(encoder, decoder, DataLoader(TensorDataset(X_tr), batch_size=64, shuffle=True), 20)
    labelled = DataLoader(TensorDataset(X_tr[:300], y_tr[:300]), batch_size=32, shuffle=True)
    finetune(encoder, head, labelled, 40)
    head.eval()
    with torch.no_grad():
        acc = (head(encoder(X_te)).argmax(1) == y_te).float().mean().item()
    print(f"test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
