"""One row of ten is of the class that matters, and is learned like the others."""

from datasets import Dataset
from material import QUIET
from sklearn.datasets import make_classification
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


set_seed(0)
x, y = make_classification(2000, 20, n_informative=8, weights=[0.9], class_sep=1.0, random_state=0)
data = Dataset.from_dict({"x": x.astype("float32"), "labels": y})
trainer = Trainer(
    model=Net(),
    args=TrainingArguments(**QUIET, learning_rate=5e-3, per_device_train_batch_size=64, num_train_epochs=4),
    train_dataset=data,
)
trainer.train()
