"""MiniLM fine-tuned on tweets in a plain loop: dynamic padding, linear schedule, the model's own loss."""

import torch
from material import MINILM, tweets  # slow
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_linear_schedule_with_warmup,
)

torch.manual_seed(0)
tokenizer = AutoTokenizer.from_pretrained(MINILM)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)


def encode(frame):
    encodings = tokenizer(frame["text"].tolist(), truncation=True, max_length=24)
    return [
        {"input_ids": ids, "attention_mask": mask, "label": label}
        for ids, mask, label in zip(encodings["input_ids"], encodings["attention_mask"], frame["label"])
    ]


collator = DataCollatorWithPadding(tokenizer)
train_dataloader = DataLoader(encode(tweets(320)), shuffle=True, batch_size=16, collate_fn=collator)
eval_dataloader = DataLoader(encode(tweets(120, start=320)), batch_size=32, collate_fn=collator)

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
num_epochs = 1
num_training_steps = num_epochs * len(train_dataloader)
lr_scheduler = get_linear_schedule_with_warmup(optimizer, num_training_steps // 10, num_training_steps)

for epoch in range(num_epochs):
    model.train()
    for batch in train_dataloader:
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()

    model.eval()
    correct = total = 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        predictions = torch.argmax(outputs.logits, dim=-1)
        correct += (predictions == batch["labels"]).sum().item()
        total += len(predictions)
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {correct / total:.3f}")
