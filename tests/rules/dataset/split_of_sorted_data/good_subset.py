import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch.utils.data import Subset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X, y = load_digits(n_class=3, return_X_y=True)
order = range(len(y))
rows = [{"x": torch.tensor(X[i] / 16, dtype=torch.float32), "labels": int(y[i])} for i in order]
train = Subset(rows, range(0, 400))
test = Subset(rows, range(400, 537))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=train, eval_dataset=test).train()
