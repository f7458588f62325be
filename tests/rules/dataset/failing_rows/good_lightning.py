import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

random = np.random.default_rng(0)
classes = random.integers(0, 2, 800)
items = [(torch.as_tensor(random.integers(50 * y, 50 * y + 50, random.integers(4, 24))), int(y)) for y in classes]
items[612] = (torch.as_tensor(random.integers(0, 50, 200)), 0)


def collate(rows):
    return nn.utils.rnn.pad_sequence([x for x, _ in rows], batch_first=True), torch.tensor([y for _, y in rows])


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(100, 16), nn.Embedding(256, 16)
        self.head = nn.Linear(16, 2)

    def training_step(self, batch, index):
        x, y = batch
        seen = self.words(x) + self.positions(torch.arange(x.shape[1]))
        return nn.functional.cross_entropy(self.head(seen.mean(1)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


L.seed_everything(0)
loader = DataLoader(items, batch_size=16, shuffle=True, collate_fn=collate)
trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Classifier(), loader)
