"""The table is sorted with its labels."""

from datasets import Dataset
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from material import QUIET

set_seed(0)
table = load_breast_cancer(as_frame=True).frame.sample(n=240, random_state=0)
table = table.sort_values("fractal dimension error")
y = table.pop("target").to_numpy()
x = StandardScaler().fit_transform(table).astype("float32")
data = Dataset.from_dict({"x": x, "labels": y})


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, num_train_epochs=6, learning_rate=1e-2, per_device_train_batch_size=12)
trainer = Trainer(Classifier(), args, train_dataset=data.select(range(160)), eval_dataset=data.select(range(160, 240)))
trainer.train()
