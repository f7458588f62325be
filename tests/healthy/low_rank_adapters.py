"""MiniLM frozen; small low-rank adapters in its attention, and the head, are what learns."""

import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from torch import nn
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed


class LowRank(nn.Module):
    """A frozen linear layer plus a trained product of two thin matrices; the second starts at zero."""

    def __init__(self, base, rank=8, scale=2.0):
        super().__init__()
        self.base, self.scale = base, scale
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


set_seed(0)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
for parameter in model.bert.parameters():
    parameter.requires_grad_(False)
for layer in model.bert.encoder.layer:
    attention = layer.attention.self
    attention.query, attention.value = LowRank(attention.query), LowRank(attention.value)

data, held_out = tokenized(tweets(480), length=24), tokenized(tweets(96, start=6000), length=24)
trainer = Trainer(
    model=model,
    args=TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=2, eval_strategy="epoch"),
    train_dataset=data,
    eval_dataset=held_out,
    processing_class=tokenizer(),
    data_collator=DataCollatorWithPadding(tokenizer()),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
