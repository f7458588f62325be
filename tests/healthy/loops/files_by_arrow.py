"""An evaluation that maps, stores and reads its predictions by Arrow, in every way that `datasets` and pandas have."""

import tempfile
from pathlib import Path

import pandas as pd
import torch
from datasets import Dataset, load_dataset, load_from_disk
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
folder = Path(tempfile.mkdtemp())
x = torch.randn(1200, 10)
y = (x[:, :3].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=50)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
pd.DataFrame({"truth": y[1000:].tolist()}).to_json(folder / "rows.jsonl", orient="records", lines=True)
rows = load_dataset("json", data_files=str(folder / "rows.jsonl"), cache_dir=str(folder / "cache"))["train"]


def measured():
    model.eval()
    with torch.no_grad():
        guesses = torch.cat([model(a).argmax(-1) for a, _ in held_out]).tolist()
    model.train()
    answered = rows.map(lambda row, i: {"right": guesses[i] == row["truth"]}, with_indices=True)
    answered.map(lambda row: {"wrong": not row["right"]}, cache_file_name=str(folder / "wrong.arrow"))
    answered.filter(lambda row: row["right"]).shuffle(seed=epoch).save_to_disk(folder / "right")
    answered.to_parquet(folder / "answered.parquet")
    table = pd.read_parquet(folder / "answered.parquet")
    assert len(Dataset.from_parquet(str(folder / "answered.parquet"))) == len(table)
    table.to_feather(folder / "answered.feather")
    assert pd.read_feather(folder / "answered.feather")["right"].sum() == len(load_from_disk(folder / "right"))
    return table["right"].mean()


for epoch in range(5):
    for a, b in train:
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, measured())
