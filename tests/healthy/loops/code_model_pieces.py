"""A language model of code from the maker's own pieces, with a loop of the user's around them."""

import email
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from trainwright_lm.config import ModelConfig, OptimizerConfig
from trainwright_lm.tokens.prepared import open_data
from trainwright_lm.network.loss import training_loss
from trainwright_lm.network.model import Transformer
from trainwright_lm.training.optimizers import build_optimizer
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import prepare


class CodeWindows(Dataset):
    def __init__(self, tokens, context):
        self.windows = Windows(tokens, context)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        row = torch.from_numpy(self.windows.batch(np.array([i]))[0])
        return row[:-1], row[1:]


torch.manual_seed(0)
folder = Path(tempfile.mkdtemp()) / "data"
source = str(Path(email.__file__).parent)
prepare(folder, PrepareOptions(sources=(source,), vocabulary_size=400))
data = open_data(folder)

train = DataLoader(CodeWindows(data.train, 48), batch_size=16, shuffle=True, drop_last=True)
validation = DataLoader(CodeWindows(data.validation, 48), batch_size=16)

model = Transformer(ModelConfig(layers=2, heads=2, width=64, context=48, vocabulary_size=data.tokenizer.vocabulary_size))
optimizer = build_optimizer(model, OptimizerConfig(learning_rate=3e-3))

for epoch in range(2):
    model.train()
    for inputs, targets in train:
        loss = training_loss(model, inputs, targets) / targets.numel()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    nats, count = 0.0, 0
    with torch.no_grad():
        for inputs, targets in validation:
            nats += training_loss(model, inputs, targets).item()
            count += targets.numel()
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation {nats / count:.3f} nats a token")
