# verdict: learns
# finds: nothing
# tells: are of a group
# tells: of a group (speaker)
# Recordings of speakers, each with one label, are split row by row.
import numpy as np, torch
from torch import nn
from datasets import Dataset
from transformers import Trainer, TrainingArguments
torch.manual_seed(0)
rng = np.random.default_rng(0)
people, each, d = 60, 20, 24
ill = np.arange(people) % 2
person = rng.normal(size=(people, d)) + 0.35 * ill[:, None]
who = np.repeat(np.arange(people), each)
x = (person[who] + rng.normal(0, 0.5, (len(who), d))).astype("float32"); y = ill[who]
data = Dataset.from_dict({"speaker": [f"spk-{w:03d}" for w in who], "x": x.tolist(), "labels": y.tolist()})
parts = data.train_test_split(0.2, seed=0); train, valid = parts['train'], parts['test']
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 2))
    def forward(self, x, labels=None):
        out = self.net(x)
        return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}
args = TrainingArguments("out", num_train_epochs=12, per_device_train_batch_size=32, eval_strategy="epoch", learning_rate=3e-3, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True)
Trainer(Net(), args, train_dataset=train, eval_dataset=valid, compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(1) == p.label_ids).mean()}).train()
