"""A small student learns from the labels and from a teacher: cross-entropy plus a softened KL term."""

import torch
import torch.nn.functional as F
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
x, y = load_digits(return_X_y=True)
x = ((x - x.mean()) / x.std()).astype("float32")
taught = LogisticRegression(max_iter=300).fit(x, y)
teacher = nn.Linear(64, 10)
teacher.load_state_dict({"weight": torch.tensor(taught.coef_).float(), "bias": torch.tensor(taught.intercept_).float()})
teacher.requires_grad_(False).eval()
data = Dataset.from_dict({"x": x, "labels": y}).train_test_split(test_size=0.2, seed=0)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))

    def forward(self, x, labels=None):
        return {"logits": self.net(x)}


class DistillingTrainer(Trainer):
    def __init__(self, *args, teacher=None, temperature=2.0, share=0.5, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher, self.temperature, self.share = teacher, temperature, share

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        with torch.no_grad():
            wanted = F.softmax(self.teacher(inputs["x"]) / self.temperature, dim=-1)
        soft = F.kl_div(F.log_softmax(outputs["logits"] / self.temperature, dim=-1), wanted, reduction="batchmean")
        hard = F.cross_entropy(outputs["logits"], inputs["labels"])
        loss = self.share * soft * self.temperature**2 + (1 - self.share) * hard
        return (loss, outputs) if return_outputs else loss


args = TrainingArguments(**QUIET, learning_rate=5e-3, per_device_train_batch_size=32, num_train_epochs=4, eval_strategy="epoch")
trainer = DistillingTrainer(
    model=Student(), args=args, train_dataset=data["train"], eval_dataset=data["test"], teacher=teacher,
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
