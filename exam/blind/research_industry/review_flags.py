"""Multi-label review moderation (spam / abuse / medical / urgent) with a small DistilBERT and rare labels."""
import json
import logging
import tempfile
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from datasets import Dataset, DatasetDict
from sklearn.metrics import average_precision_score, f1_score
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          EarlyStoppingCallback, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("moderation")

LABELS = ["spam", "abuse", "medical", "urgent"]
RATES = [0.15, 0.06, 0.05, 0.10]
CUES = {
    "spam": ["click here", "free voucher", "visit my page", "limited offer"],
    "abuse": ["you idiots", "shut up", "worthless staff", "total morons"],
    "medical": ["allergic reaction", "went to hospital", "skin rash", "felt dizzy"],
    "urgent": ["right now", "as soon as possible", "before tonight", "immediately please"],
}
NEUTRAL = ("the product came in a box and works fine colour is nice delivery took two days my wife likes it here "
           "free shipping was good staff answered soon page says hospital blue right size visit again now").split()


@dataclass
class Config:
    n: int = 2200
    max_length: int = 40
    epochs: int = 5
    batch: int = 32
    lr: float = 2e-3
    seed: int = 53


def load_reviews(cfg):
    rng = np.random.default_rng(cfg.seed)
    rows = []
    for _ in range(cfg.n):
        flags = (rng.random(len(LABELS)) < RATES).astype(int)
        words = list(rng.choice(NEUTRAL, rng.integers(6, 20)))
        for name, on in zip(LABELS, flags):
            if on:
                words.insert(int(rng.integers(0, len(words) + 1)), str(rng.choice(CUES[name])))
        rows.append({"text": " ".join(words), **dict(zip(LABELS, flags))})
    return pd.DataFrame(rows)


def build_tokenizer(texts):
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]"]))
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")


class WeightedTrainer(Trainer):
    def __init__(self, *args, pos_weight, **kwargs):
        super().__init__(*args, **kwargs)
        self.pos_weight = pos_weight

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out.logits, labels, pos_weight=self.pos_weight)
        return (loss, out) if return_outputs else loss

    def create_optimizer(self, *args, **kwargs):
        if self.optimizer is None:
            plain, decayed = [], []
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    (plain if p.ndim == 1 or "embeddings" in name else decayed).append(p)
            self.optimizer = torch.optim.AdamW(
                [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
                lr=self.args.learning_rate)
        return self.optimizer


def compute_metrics(p):
    prob = 1 / (1 + np.exp(-p.predictions))
    ap = [average_precision_score(p.label_ids[:, k], prob[:, k]) for k in range(len(LABELS))]
    return {"map": float(np.mean(ap)), "micro_f1": f1_score(p.label_ids, prob > 0.5, average="micro")}


def main():
    cfg = Config()
    set_seed(cfg.seed)
    df = load_reviews(cfg)
    a, b = int(0.7 * cfg.n), int(0.85 * cfg.n)
    parts = [df.iloc[:a], df.iloc[a:b], df.iloc[b:]]
    tokenizer = build_tokenizer(parts[0]["text"])
    rate = parts[0][LABELS].mean().to_numpy()
    log.info("label rates %s", dict(zip(LABELS, rate.round(3))))

    def encode(batch):
        enc = tokenizer(["[CLS] " + t for t in batch["text"]], truncation=True, max_length=cfg.max_length)
        enc["labels"] = np.stack([batch[c] for c in LABELS], 1).astype("float32").tolist()
        return enc

    ds = DatasetDict({k: Dataset.from_pandas(p, preserve_index=False)
                      for k, p in zip(("train", "valid", "test"), parts)})
    ds = ds.map(encode, batched=True, remove_columns=["text", *LABELS])
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=len(tokenizer), dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id, num_labels=len(LABELS), initializer_range=0.08,
        problem_type="multi_label_classification", id2label=dict(enumerate(LABELS)),
        label2id={c: i for i, c in enumerate(LABELS)}))
    model.distilbert.embeddings.position_embeddings.weight.requires_grad_(False)

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=cfg.epochs, per_device_train_batch_size=cfg.batch,
            per_device_eval_batch_size=128, learning_rate=cfg.lr, lr_scheduler_type="constant_with_warmup",
            warmup_steps=20, eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, logging_steps=50,
            load_best_model_at_end=True, metric_for_best_model="map", greater_is_better=True,
            report_to=[], disable_tqdm=True, seed=cfg.seed, use_cpu=True)
        trainer = WeightedTrainer(
            model=model, args=args, train_dataset=ds["train"], eval_dataset=ds["valid"],
            data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=compute_metrics,
            pos_weight=torch.tensor(np.sqrt((1 - rate) / rate), dtype=torch.float32),
            callbacks=[EarlyStoppingCallback(early_stopping_patience=2)])
        trainer.train()
        test = trainer.evaluate(ds["test"], metric_key_prefix="test")
    print(json.dumps({k: round(v, 4) for k, v in test.items() if k in ("test_loss", "test_map", "test_micro_f1")}))


if __name__ == "__main__":
    main()
