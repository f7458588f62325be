"""Imbalanced classification with a Trainer subclass. The model is a plain nn.Module."""
import tempfile

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class TabularNet(nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, n_classes))

    def forward(self, features, labels=None):
        return {"logits": self.net(features)}


class TableDataset(torch.utils.data.Dataset):
    def __init__(self, X, y):
        self.X, self.y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"features": self.X[i], "labels": self.y[i]}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(features=inputs["features"])
        loss = nn.functional.cross_entropy(outputs["logits"], labels, weight=self.class_weights)
        return (loss, outputs) if return_outputs else loss


def compute_metrics(eval_pred):
    preds = eval_pred.predictions.argmax(axis=-1)
    return {"balanced_accuracy": balanced_accuracy_score(eval_pred.label_ids, preds),
            "recall_rare": recall_score(eval_pred.label_ids, preds, pos_label=1)}


set_seed(0)
X, y = make_classification(3000, n_features=20, n_informative=8, n_clusters_per_class=2, weights=[0.94], class_sep=0.9, flip_y=0.0, random_state=4)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
counts = np.bincount(y_tr)
weights = torch.tensor(counts.sum() / (2 * counts), dtype=torch.float32)
print("class counts", counts, "weights", weights.tolist())

with tempfile.TemporaryDirectory() as tmp:
    args = TrainingArguments(output_dir=tmp, num_train_epochs=8, per_device_train_batch_size=64, per_device_eval_batch_size=256,
                             learning_rate=3e-3, lr_scheduler_type="linear", logging_strategy="epoch", eval_strategy="epoch",
                             save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = WeightedTrainer(model=TabularNet(20, 2), args=args, train_dataset=TableDataset(X_tr, y_tr),
                              eval_dataset=TableDataset(X_te, y_te), compute_metrics=compute_metrics, class_weights=weights)
    trainer.train()
    m = trainer.evaluate()
print(f"balanced accuracy {m['eval_balanced_accuracy']:.3f}, recall of the rare class {m['eval_recall_rare']:.3f}")
