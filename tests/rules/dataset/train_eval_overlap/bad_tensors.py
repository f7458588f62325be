import torch
from material import QUIET
from sklearn.datasets import load_wine
from torch.utils.data import Subset, TensorDataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X, y = load_wine(return_X_y=True)
data = TensorDataset(torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32), torch.tensor(y))
train = Subset(data, torch.randperm(178)[:140].tolist())
test = Subset(data, torch.randperm(178)[140:].tolist())  # expect: train-eval-overlap


def collate(items):
    return {"x": torch.stack([x for x, _ in items]), "labels": torch.stack([y for _, y in items])}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, data_collator=collate, train_dataset=train, eval_dataset=test).train()
