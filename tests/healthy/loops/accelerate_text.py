"""Accelerate in the manner of the Transformers examples: tokenized tweets, bf16, model(**batch).loss."""

import torch
from accelerate import Accelerator
from material import tokenized, tokenizer, tweets
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification, get_scheduler

torch.manual_seed(0)
accelerator = Accelerator(mixed_precision="bf16", cpu=True)
data = tokenized(tweets(1200)).remove_columns(["text", "token_type_ids"]).rename_column("label", "labels")
split = data.train_test_split(test_size=200, seed=0)
collate = DataCollatorWithPadding(tokenizer(), pad_to_multiple_of=8)
train_dataloader = DataLoader(split["train"], shuffle=True, batch_size=32, collate_fn=collate)
eval_dataloader = DataLoader(split["test"], batch_size=64, collate_fn=collate)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, max_position_embeddings=64)
model = DistilBertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
train_dataloader, eval_dataloader, model, optimizer = accelerator.prepare(train_dataloader, eval_dataloader, model, optimizer)

num_train_epochs = 3
num_training_steps = num_train_epochs * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=num_training_steps)

completed = 0
for epoch in range(num_train_epochs):
    model.train()
    for step, batch in enumerate(train_dataloader):
        outputs = model(**batch)
        accelerator.backward(outputs.loss)
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        completed += 1
    model.eval()
    right = total = 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        predictions, references = accelerator.gather_for_metrics((outputs.logits.argmax(dim=-1), batch["labels"]))
        right, total = right + (predictions == references).sum().item(), total + len(references)
    accelerator.print(f"epoch {epoch}: {outputs.loss.item():.3f} accuracy {right / total:.3f} after {completed} updates")
