"""Route inbound support e-mails to the owning team with a compact BERT trained from scratch."""
import json
import logging
import tempfile
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("routing")

TEAMS = {
    "billing": "invoice charged refund payment card subscription receipt overcharged amount bank",
    "delivery": "parcel courier tracking shipment arrived late address depot package missing",
    "access": "password login account locked reset code email verification sign session",
    "returns": "return exchange size broken defect replacement warranty label box faulty",
}
FILLER = "i have been trying since last week and would like to know what happens next please could you help me " \
         "with this because it is urgent for us and nobody answered so far".split()


@dataclass
class RoutingConfig:
    n_train: int = 800
    n_eval: int = 300
    max_tokens: int = 32
    epochs: int = 4
    batch_size: int = 32
    lr: float = 3e-3
    seed: int = 29


def gateway_header(rng):
    region = rng.choice(["emea", "apac", "amer"])
    channel = rng.choice(["web", "phone", "store"])
    return (f"this message was received by the {region} customer gateway and has been scanned for malicious content "
            f"do not reply to this address channel {channel} priority normal consent given language english "
            f"original message follows below")


def write_mail(team, rng):
    words = list(rng.choice(FILLER, rng.integers(10, 22)))
    for w in rng.choice(TEAMS[team].split(), rng.integers(2, 5), replace=False):
        words.insert(int(rng.integers(0, len(words) + 1)), w)
    if rng.random() < 0.3:
        other = rng.choice([t for t in TEAMS if t != team])
        words.append(str(rng.choice(TEAMS[other].split())))
    return gateway_header(rng) + " " + " ".join(words)


def load_mails(n, rng):
    teams = rng.choice(list(TEAMS), n, p=[0.35, 0.3, 0.2, 0.15])
    return pd.DataFrame({"text": [write_mail(t, rng) for t in teams], "team": teams})


def build_tokenizer(texts):
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.normalizer = normalizers.Lowercase()
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(texts, trainers.WordLevelTrainer(
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], vocab_size=2000))
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", tok.token_to_id("[CLS]")), ("[SEP]", tok.token_to_id("[SEP]"))])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]")


def prepare(df, tokenizer, label2id, cfg):
    ds = Dataset.from_pandas(df, preserve_index=False)

    def encode(batch):
        enc = tokenizer(batch["text"], truncation=True, max_length=cfg.max_tokens)
        enc["labels"] = [label2id[t] for t in batch["team"]]
        return enc

    return ds.map(encode, batched=True, remove_columns=ds.column_names)


def compute_metrics(pred):
    guess = pred.predictions.argmax(-1)
    return {"accuracy": accuracy_score(pred.label_ids, guess),
            "macro_f1": f1_score(pred.label_ids, guess, average="macro")}


def main():
    cfg = RoutingConfig()
    set_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    train_df, eval_df = load_mails(cfg.n_train, rng), load_mails(cfg.n_eval, rng)
    label2id = {t: i for i, t in enumerate(sorted(TEAMS))}
    log.info("team shares: %s", train_df["team"].value_counts(normalize=True).round(3).to_dict())

    tokenizer = build_tokenizer(train_df["text"])
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=1, num_attention_heads=4,
        intermediate_size=96, initializer_range=0.08, max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id,
        num_labels=len(label2id), label2id=label2id, id2label={i: t for t, i in label2id.items()}))

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=cfg.epochs, per_device_train_batch_size=cfg.batch_size,
            per_device_eval_batch_size=64, learning_rate=cfg.lr, lr_scheduler_type="linear",
            eval_strategy="epoch", save_strategy="no", logging_steps=20, report_to=[],
            disable_tqdm=True, seed=cfg.seed, use_cpu=True)
        trainer = Trainer(
            model=model, args=args, processing_class=tokenizer, compute_metrics=compute_metrics,
            train_dataset=prepare(train_df, tokenizer, label2id, cfg),
            eval_dataset=prepare(eval_df, tokenizer, label2id, cfg),
            data_collator=DataCollatorWithPadding(tokenizer))
        trainer.train()
        metrics = trainer.evaluate()
    print(json.dumps({k: round(v, 4) for k, v in metrics.items() if k in ("eval_accuracy", "eval_macro_f1", "eval_loss")}))


if __name__ == "__main__":
    main()
