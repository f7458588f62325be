# verdict: learns
# finds: rows-measured-twice
# tells: windows of one series are in both sets
# Windows of one series, of which each shares all values but one with the next, are dealt out at random.
import numpy as np, torch
from torch import nn
from datasets import Dataset
from transformers import Trainer, TrainingArguments
torch.manual_seed(3); rng = np.random.default_rng(3)
n = 1500
flow = np.cumsum(rng.normal(0, 0.2, n)) + 2 * np.sin(np.arange(n) / 7); flow = (flow - flow.mean()) / flow.std()
rows = [{"x": flow[i : i + 20].astype("float32").tolist(), "labels": float(flow[i + 20])} for i in range(n - 20)]
data = Dataset.from_list(rows)
parts = data.train_test_split(0.2, seed=0); train, valid = parts['train'], parts['test']
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(self, x, labels=None):
        out = self.net(x)
        return {"loss": nn.functional.mse_loss(out[:, 0], labels), "logits": out}
args = TrainingArguments("out", num_train_epochs=8, per_device_train_batch_size=32, eval_strategy="epoch", learning_rate=3e-3, report_to=[], save_strategy="no", use_cpu=True, remove_unused_columns=False, disable_tqdm=True)
Trainer(Net(), args, train_dataset=train, eval_dataset=valid).train()
