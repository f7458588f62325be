"""SimCLR on 8x8 digits and a linear probe (sklearn) on the features."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    def __init__(self, images):
        self.images = images

    def augment(self, img):
        dx, dy = torch.randint(-1, 2, (2,)).tolist()
        img = torch.roll(img, (dx, dy), (1, 2))
        return img * (0.8 + 0.4 * torch.rand(1)) + 0.1 * torch.randn_like(img)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.augment(self.images[i]), self.augment(self.images[i])


class SimCLR(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                                      nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return self.projector(self.backbone(x))


def info_nce_loss(features, batch_size, temperature):
    labels = torch.cat([torch.arange(batch_size) for _ in range(2)])
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity = similarity[~mask].view(similarity.shape[0], -1)
    positives = similarity[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity[~labels.bool()].view(similarity.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long)), logits


def train(temperature=0.2, epochs=10, batch_size=128):
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    loader = DataLoader(TwoViews(images), batch_size=batch_size, shuffle=True, drop_last=True)
    model = SimCLR()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    for epoch in range(epochs):
        model.train()
        for v1, v2 in loader:
            loss, logits = info_nce_loss(model(torch.cat([v1, v2])), len(v1), temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        top1 = (logits.argmax(1) == 0).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} top1 of the positive {top1:.3f}")
    model.eval()
    with torch.no_grad():
        feats = F.normalize(model(images), dim=1).numpy()
    probe = LogisticRegression(max_iter=500).fit(feats[:1200], digits.target[:1200])
    print(f"linear probe accuracy {probe.score(feats[1200:], digits.target[1200:]):.3f}")


if __name__ == "__main__":
    train()
