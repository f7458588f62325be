"""A tiny DistilBERT trained from scratch on tweets: batches of text from the loader, tokenized in the loop."""

import torch
from material import tokenizer, tweets
from torch.utils.data import DataLoader
from transformers import DistilBertConfig, DistilBertForSequenceClassification

torch.manual_seed(0)
read = tokenizer()
frame = tweets(1500)
rows = list(zip(frame["text"], frame["label"]))
train_loader = DataLoader(rows[:1200], batch_size=32, shuffle=True)
valid_loader = DataLoader(rows[1200:], batch_size=100)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, max_position_embeddings=64)
model = DistilBertForSequenceClassification(config)
no_decay = ("bias", "LayerNorm.weight", "layer_norm.weight")
grouped = [
    {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
    {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(grouped, lr=1e-3)

for epoch in range(4):
    model.train()
    losses = []
    for texts, labels in train_loader:
        inputs = read(list(texts), padding=True, truncation=True, max_length=32, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        outputs = model(**inputs, labels=labels)
        optimizer.zero_grad()
        outputs.loss.backward()
        optimizer.step()
        losses.append(outputs.loss.item())
    model.eval()
    hits = 0
    with torch.no_grad():
        for texts, labels in valid_loader:
            inputs = read(list(texts), padding=True, truncation=True, max_length=32, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            hits += (model(**inputs).logits.argmax(-1) == labels).sum().item()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} accuracy {hits / 300:.3f}")
