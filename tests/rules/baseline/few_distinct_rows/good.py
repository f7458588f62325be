"""All training rows are read."""

from datasets import Dataset
from sklearn.datasets import make_classification
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from material import QUIET

set_seed(0)
x, y = make_classification(1000, 30, n_informative=10, n_redundant=0, class_sep=2.0, random_state=0)
data = Dataset.from_dict({"x": x.astype("float32"), "labels": y})
train, held = data.select(range(700)), data.select(range(700, 1000))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, num_train_epochs=10, learning_rate=1e-2, per_device_train_batch_size=32)
trainer = Trainer(Classifier(), args, train_dataset=train, eval_dataset=held)
trainer.train()
print(trainer.evaluate())
