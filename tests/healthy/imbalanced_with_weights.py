"""Nine rows of one class for each of the other, met with class weights and balanced accuracy."""

import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
x, y = make_classification(3000, 20, n_informative=8, weights=[0.9], class_sep=1.5, random_state=0)
data = Dataset.from_dict({"x": x.astype("float32"), "labels": y}).train_test_split(test_size=0.2, seed=0)
weights = torch.tensor(len(y) / (2 * np.bincount(y)), dtype=torch.float32)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
        self.register_buffer("weights", weights)

    def forward(self, x, labels=None):
        logits = self.layers(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels, weight=self.weights)
        return {"loss": loss, "logits": logits}


trainer = Trainer(
    model=Classifier(),
    args=TrainingArguments(
        **QUIET, learning_rate=5e-3, per_device_train_batch_size=64, num_train_epochs=4, eval_strategy="epoch",
        metric_for_best_model="balanced",
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    compute_metrics=lambda p: {"balanced": balanced_accuracy_score(p.label_ids, p.predictions.argmax(-1))},
)
trainer.train()
print("RESULT", trainer.evaluate())
