from __future__ import print_function
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
X = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
tr, te = train_test_split(X, test_size=0.2, random_state=0)
train_loader = DataLoader(TensorDataset(tr), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(te), batch_size=64, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc21 = nn.Linear(128, 10)
        self.fc22 = nn.Linear(128, 10)
        self.fc3 = nn.Linear(10, 128)
        self.fc4 = nn.Linear(128, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch):
    model.train()
    train_loss = 0
    for (data,) in train_loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    return train_loss / len(train_loader.dataset)


def test(epoch):
    model.eval()
    test_loss = rec = 0
    with torch.no_grad():
        for (data,) in test_loader:
            recon, mu, logvar = model(data)
            test_loss += loss_function(recon, data, mu, logvar).item()
            rec += F.mse_loss(recon, data, reduction="sum").item()
    n = len(test_loader.dataset)
    return test_loss / n, rec / n


for epoch in range(1, 31):
    tr_loss = train(epoch)
    te_loss, mse = test(epoch)
    if epoch == 1 or epoch % 5 == 0:
        print("====> Epoch: {} train {:.3f} test {:.3f} reconstruction {:.3f}".format(epoch, tr_loss, te_loss, mse))
