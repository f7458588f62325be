"""Multi-label tagging of short synthetic tickets with a tiny BERT (HF Trainer)."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import f1_score
from torch.utils.data import Dataset
from transformers import (BertConfig, BertModel, EarlyStoppingCallback, Trainer, TrainingArguments, set_seed)

TAGS = ["billing", "outage", "login", "refund", "urgent"]
LEXICON = {
    "billing": ["invoice", "charge", "card", "tax"], "outage": ["down", "offline", "timeout", "crash"],
    "login": ["password", "signin", "token", "locked"], "refund": ["return", "money", "cancel", "credit"],
    "urgent": ["asap", "immediately", "critical", "now"]}
FILLER = "the a my our please help with about since yesterday account page it is team app".split()
VOCAB = ["[PAD]", "[CLS]"] + FILLER + sorted(w for ws in LEXICON.values() for w in ws)
STOI = {w: i for i, w in enumerate(VOCAB)}


def make_tickets(n, seed):
    rng = np.random.default_rng(seed)
    rate = np.array([0.35, 0.3, 0.3, 0.2, 0.15])
    texts, labels = [], []
    for _ in range(n):
        y = (rng.random(len(TAGS)) < rate).astype(np.float32)
        words = list(rng.choice(FILLER, size=rng.integers(4, 12)))
        for t, on in zip(TAGS, y):
            if on:
                words.insert(int(rng.integers(0, len(words) + 1)), str(rng.choice(LEXICON[t])))
        texts.append(" ".join(words))
        labels.append(y)
    return texts, np.stack(labels)


class TicketDataset(Dataset):
    def __init__(self, texts, labels):
        self.ids = [[STOI["[CLS]"]] + [STOI[w] for w in t.split()] for t in texts]
        self.labels = labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.tensor([r["input_ids"] + [0] * (width - len(r["input_ids"])) for r in rows])
    mask = torch.tensor([[1] * len(r["input_ids"]) + [0] * (width - len(r["input_ids"])) for r in rows])
    return {"input_ids": ids, "attention_mask": mask,
            "labels": torch.from_numpy(np.stack([r["labels"] for r in rows]))}


class TicketTagger(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(config.hidden_size, len(TAGS))

    def forward(self, input_ids, attention_mask, labels=None):
        h = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        m = attention_mask.unsqueeze(-1).to(h.dtype)
        return {"logits": self.head((h * m).sum(1) / m.sum(1))}


class TagTrainer(Trainer):
    def __init__(self, *args, pos_weight=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.pos_weight = pos_weight

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(out["logits"], labels, pos_weight=self.pos_weight)
        return (loss, out) if return_outputs else loss

    def create_optimizer(self, *args, **kwargs):
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW([
                {"params": self.model.bert.parameters(), "lr": self.args.learning_rate},
                {"params": self.model.head.parameters(), "lr": 3 * self.args.learning_rate}], weight_decay=0.01)
        return self.optimizer


def metrics(p):
    return {"macro_f1": f1_score(p.label_ids, p.predictions > 0, average="macro", zero_division=0)}


def main():
    set_seed(0)
    train_x, train_y = make_tickets(1500, 1)
    val_x, val_y = make_tickets(300, 2)
    test_x, test_y = make_tickets(400, 3)
    pos = torch.tensor(train_y.mean(0))
    config = BertConfig(
        vocab_size=len(VOCAB), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=32, hidden_dropout_prob=0.05, attention_probs_dropout_prob=0.0)
    args = TrainingArguments(
        output_dir="/tmp/ticket_tagger", num_train_epochs=8, per_device_train_batch_size=32,
        per_device_eval_batch_size=100, learning_rate=2e-3, warmup_steps=40, eval_strategy="epoch",
        save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True, metric_for_best_model="macro_f1",
        label_names=["labels"], report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=200,
        remove_unused_columns=False, dataloader_pin_memory=False)
    trainer = TagTrainer(
        model=TicketTagger(config), args=args, train_dataset=TicketDataset(train_x, train_y),
        eval_dataset=TicketDataset(val_x, val_y), data_collator=collate, compute_metrics=metrics,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2)], pos_weight=((1 - pos) / pos).sqrt())
    trainer.train()
    print(f"test macro F1 {metrics(trainer.predict(TicketDataset(test_x, test_y)))['macro_f1']:.4f}")


if __name__ == "__main__":
    main()
