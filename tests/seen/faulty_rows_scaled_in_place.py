# verdict: not shown
# finds: rewritten-rows
# Lightning; the array behind a Subset is centred again at each reading; a count of the readings changes, too.
import lightning
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Rows(Dataset):
    def __init__(self):
        random = np.random.default_rng(0)
        self.values = random.normal(5, 2, (500, 7)).astype("float32")
        self.labels = (self.values[:, 0] > 5).astype("int64")
        self.reads = np.zeros(500, int)

    def __len__(self):
        return 500

    def __getitem__(self, number):
        self.reads[number] += 1
        row = self.values[number]
        row -= self.values.mean(0)  # finds: rewritten-rows
        return torch.from_numpy(row), self.labels[number]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 2))

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


torch.manual_seed(0)
trainer = lightning.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), DataLoader(Subset(Rows(), range(400)), 20, shuffle=True))
