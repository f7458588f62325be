"""Sentiment of synthetic reviews with a tiny DistilBERT and a hand written accelerate loop."""
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_linear_schedule_with_warmup

GOOD = "great lovely brilliant superb charming fun".split()
BAD = "awful boring terrible dull weak poor".split()
REST = "the film plot actor music scene was is and a quite really with this story ending".split()


def review():
    label = random.randint(0, 1)
    words = random.choices(REST, k=random.randint(6, 14))
    for _ in range(random.randint(1, 3)):
        negate = random.random() < 0.3
        pool = GOOD if (label == 1) != negate else BAD
        at = random.randint(0, len(words))
        words[at:at] = (["not"] if negate else []) + [random.choice(pool)]
    return words, label


def main():
    set_seed(13)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    data = [review() for _ in range(2600)]
    vocab = {w: i + 1 for i, w in enumerate(sorted(set(GOOD + BAD + REST + ["not"])))}

    def collate(items):
        n = max(len(w) for w, _ in items)
        ids = torch.zeros(len(items), n, dtype=torch.long)
        for r, (w, _) in enumerate(items):
            ids[r, :len(w)] = torch.tensor([vocab[x] for x in w])
        return {"input_ids": ids, "attention_mask": (ids != 0).long(),
                "labels": torch.tensor([l for _, l in items])}

    train_dl = DataLoader(data[:2100], batch_size=32, shuffle=True, collate_fn=collate)
    eval_dl = DataLoader(data[2100:], batch_size=100, collate_fn=collate)

    config = DistilBertConfig(vocab_size=len(vocab) + 1, dim=48, n_layers=2, n_heads=4, hidden_dim=96,
                              max_position_embeddings=64, dropout=0.1, num_labels=2)
    model = DistilBertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    epochs = 5
    steps = epochs * len(train_dl) // 2
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=10, num_training_steps=steps)
    model, optimizer, train_dl, eval_dl, scheduler = accelerator.prepare(
        model, optimizer, train_dl, eval_dl, scheduler)

    for epoch in range(epochs):
        model.train()
        total = 0.0
        for batch in train_dl:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.zero_grad()
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
            total += loss.item()

        model.eval()
        hits, n = 0, 0
        for batch in eval_dl:
            with torch.no_grad():
                logits = model(**batch).logits
            preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            hits += (preds == refs).sum().item()
            n += len(refs)
        accelerator.print(f"epoch {epoch}: train loss {total / len(train_dl):.4f}, eval accuracy {hits / n:.4f}")

    accelerator.print("done")


if __name__ == "__main__":
    main()
