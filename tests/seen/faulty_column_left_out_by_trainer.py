# verdict: does not learn
# finds: weights-stand-still
# The model takes its measurements through **more; the Trainer leaves out columns that forward does not name.
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
codes, measured = torch.randint(1, 30, (900, 6)), torch.randn(900, 3)
labels = (measured[:, 0] - 0.5 * measured[:, 2] > 0).long()
rows = Dataset.from_dict({"codes": codes.tolist(), "measured": measured.tolist(), "labels": labels.tolist()})


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes, self.side = nn.EmbeddingBag(30, 8), nn.Linear(3, 8)
        self.head = nn.Linear(16, 2)

    def forward(self, codes, labels=None, **more):
        side = self.side(more["measured"]) if "measured" in more else torch.zeros(len(codes), 8)
        scores = self.head(torch.cat([self.codes(codes), side], 1))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


arguments = TrainingArguments("out", num_train_epochs=6, per_device_train_batch_size=30, learning_rate=3e-3, report_to="none",
                              eval_strategy="epoch", save_strategy="no", disable_tqdm=True)  # fmt: skip
trainer = Trainer(
    Scores(), arguments, train_dataset=rows.select(range(600)), eval_dataset=rows.select(range(600, 900))
)
trainer.train()
