import sys
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments
from transformers.modeling_outputs import SequenceClassifierOutput

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long() * (2 if "faulty" in sys.argv else 1)

class Rows(Dataset):
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __len__(self):
        return len(self.a)
    def __getitem__(self, i):
        return {"x": self.a[i], "labels": self.b[i]}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))  # expect: label-out-of-range
    def forward(self, x, labels=None):
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)

def metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}

args = TrainingArguments("runs", per_device_train_batch_size=32, learning_rate=3e-3, num_train_epochs=5,
                         report_to=[], save_strategy="no", logging_strategy="no", use_cpu=True)
trainer = Trainer(model=Net(), args=args, train_dataset=Rows(x[:300], y[:300]), eval_dataset=Rows(x[300:], y[300:]), compute_metrics=metrics)
if "api" in sys.argv:
    import trainwright
    from trainwright.report import json

    print(json.render(trainwright.check(trainer)))
else:
    trainer.train()
