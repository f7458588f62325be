import torch
from material import QUIET
from sklearn.datasets import load_wine
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X, y = load_wine(return_X_y=True)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
rows = [{"x": x, "labels": int(v)} for x, v in zip(X, y)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = dict(QUIET, learning_rate=1e-2, per_device_train_batch_size=256)
args = TrainingArguments(**args, dataloader_drop_last=True)  # expect: empty-dataset
Trainer(Net(), args, train_dataset=rows).train()
