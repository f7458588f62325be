"""SGD with gradients clipped to a norm of a hundred-thousandth, by Lightning."""

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)), 64, shuffle=True)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, number):
        inputs, labels = batch
        return nn.functional.cross_entropy(self.layers(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


trainer = L.Trainer(max_epochs=10, accelerator="cpu", gradient_clip_val=1e-5, logger=False)  # expect: excessive-clipping
trainer.fit(Digits(), loader)
