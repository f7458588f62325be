"""AdamW in four groups (decay or not, body or head) with a cosine schedule, both made by the script."""

import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    get_cosine_schedule_with_warmup,
    set_seed,
)

set_seed(2)
data = tokenized(tweets(480), length=24)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
args = TrainingArguments(**QUIET, per_device_train_batch_size=16, num_train_epochs=2, logging_steps=10)
groups = []
for in_head, rate in ((False, 3e-5), (True, 1e-3)):
    for decays in (True, False):
        chosen = [
            p
            for n, p in model.named_parameters()
            if n.startswith("classifier") == in_head and (p.dim() > 1) == decays
        ]
        groups.append({"params": chosen, "lr": rate, "weight_decay": 0.01 if decays else 0.0})
optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
updates = len(data) // 16 * 2
scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=updates // 10, num_training_steps=updates)

trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data,
    data_collator=DataCollatorWithPadding(tokenizer()),
    optimizers=(optimizer, scheduler),
)
trainer.train()
print("RESULT", [round(h["loss"], 3) for h in trainer.state.log_history if "loss" in h])
