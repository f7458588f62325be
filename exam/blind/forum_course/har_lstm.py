# HAR with LSTM, loss stays around 1.38 the whole time, please help
import argparse
import math
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

parser = argparse.ArgumentParser()
parser.add_argument('--hidden_size', type=int, default=48)
parser.add_argument('--num_layers', type=int, default=1)
parser.add_argument('--nb_epoch', type=int, default=12)
parser.add_argument('--lr', type=float, default=3e-3)
parser.add_argument('--batch', type=int, default=50)
opt = parser.parse_args()

torch.manual_seed(1234)
np.random.seed(1234)

ACTIVITIES = ['walk', 'run', 'stairs', 'still']
SEQ_LEN = 40
N_CHANNELS = 3
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


class AccelDataset(Dataset):
    """phone accelerometer windows (simulated for the post, mine are the same shape)"""

    def __init__(self, n, seed):
        r = np.random.RandomState(seed)
        self.X = np.zeros((n, SEQ_LEN, N_CHANNELS), dtype=np.float32)
        self.y = r.randint(0, len(ACTIVITIES), size=n)
        t = np.arange(SEQ_LEN) / 20.0
        for i, a in enumerate(self.y):
            ph = r.uniform(0, 2 * math.pi)
            if a == 0:
                f, amp, drift = r.normal(1.8, 0.15), 0.8, 0.0
            elif a == 1:
                f, amp, drift = r.normal(2.9, 0.2), 1.3, 0.0
            elif a == 2:
                f, amp, drift = r.normal(1.5, 0.15), 0.7, r.normal(0.6, 0.1)
            else:
                f, amp, drift = 0.3, 0.15, 0.0
            for c in range(N_CHANNELS):
                self.X[i, :, c] = amp * np.sin(2 * math.pi * f * t + ph + c) + drift * t * (c == 2)
        self.X += r.normal(0, 0.35, self.X.shape).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.X[i]), int(self.y[i])


class LSTMNet(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, num_classes):
        super(LSTMNet, self).__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers)
        self.fc1 = nn.Linear(hidden_size, 32)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(32, num_classes)

    def init_hidden(self, bs):
        z = torch.zeros(self.num_layers, bs, self.hidden_size, device=device)
        return z, z.clone()

    def forward(self, x):
        bs, seq, feat = x.size()
        x = x.view(seq, bs, feat)   # nn.LSTM wants (seq, batch, feature)
        h0 = self.init_hidden(bs)
        out, _ = self.lstm(x, h0)
        out = out[-1]
        out = self.relu(self.fc1(out))
        return self.fc2(out)


trainset = AccelDataset(1600, 0)
testset = AccelDataset(400, 1)
mu = trainset.X.mean((0, 1))
sd = trainset.X.std((0, 1))
trainset.X = (trainset.X - mu) / sd
testset.X = (testset.X - mu) / sd
train_loader = DataLoader(trainset, batch_size=opt.batch, shuffle=True)
test_loader = DataLoader(testset, batch_size=opt.batch)

model = LSTMNet(N_CHANNELS, opt.hidden_size, opt.num_layers, len(ACTIVITIES)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
print(model)


def test():
    model.eval()
    conf = np.zeros((len(ACTIVITIES), len(ACTIVITIES)), dtype=int)
    with torch.no_grad():
        for x, y in test_loader:
            pred = model(x.to(device)).argmax(1).cpu()
            for a, b in zip(y.tolist(), pred.tolist()):
                conf[a, b] += 1
    return conf.trace() / conf.sum(), conf


start = time.time()
for epoch in range(1, opt.nb_epoch + 1):
    model.train()
    running = 0.
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.item()
    acc, conf = test()
    print('epoch %2d  loss %.4f  test acc %.3f  (%ds)' % (epoch, running / len(train_loader), acc, time.time() - start))

acc, conf = test()
print(conf)
print('FINAL test_acc=%.4f' % acc)
