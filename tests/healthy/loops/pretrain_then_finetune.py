"""Pre-training as a denoising autoencoder, then fine-tuning with a head on 200 labels: two loops."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
unlabelled = DataLoader(TensorDataset(X[:1400]), batch_size=64, shuffle=True)
labelled = DataLoader(TensorDataset(X[:200], y[:200]), batch_size=20, shuffle=True)

encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
decoder = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 64))

optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for epoch in range(10):
    for (clean,) in unlabelled:
        noisy = clean + 0.2 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(decoder(encoder(noisy)), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pre-training {epoch}: {loss.item():.4f}")

classifier = nn.Sequential(encoder, nn.Dropout(0.2), nn.Linear(32, 10))
optimizer = torch.optim.Adam(
    [{"params": encoder.parameters(), "lr": 1e-3}, {"params": classifier[2].parameters(), "lr": 5e-3}]
)
for epoch in range(15):
    classifier.train()
    for images, labels in labelled:
        loss = nn.functional.cross_entropy(classifier(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    classifier.eval()
    with torch.no_grad():
        accuracy = (classifier(X[1400:]).argmax(1) == y[1400:]).float().mean().item()
print(f"fine-tuning: loss {loss.item():.4f} accuracy {accuracy:.3f}")
