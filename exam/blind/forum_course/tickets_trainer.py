# support ticket routing with distilbert from config, custom Trainer, imbalanced queues
# (thanks to everybody in the thread, this is the final version)
import os, random, tempfile
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import argparse
import numpy as np
import torch
from torch import nn
from datasets import Dataset, ClassLabel, Features, Value
from sklearn.metrics import f1_score, accuracy_score
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          EarlyStoppingCallback, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=float, default=6)
ap.add_argument("--lr", type=float, default=1.5e-3)
opts = ap.parse_args()
set_seed(77)

QUEUES = ["billing", "network", "hardware", "security"]
P = [0.55, 0.25, 0.15, 0.05]
WORDS = {
    "billing": "invoice refund charged payment card subscription price twice overcharged".split(),
    "network": "wifi vpn slow connection router timeout offline dns dropped".split(),
    "hardware": "screen keyboard battery printer broken fan overheating cable dock".split(),
    "security": "phishing password hacked leaked suspicious login breach locked virus".split(),
}
GLUE = ("hello please help my the since yesterday again i have a problem with and it still is not "
        "working thanks team urgent can you check customer for our office").split()


def ticket(r):
    q = r.choices(QUEUES, P)[0]
    ws = r.choices(GLUE, k=r.randint(6, 16)) + r.choices(WORDS[q], k=r.randint(1, 3))
    if r.random() < 0.5:
        ws += r.choices(WORDS[r.choice(QUEUES)], k=1)
    r.shuffle(ws)
    return {"text": " ".join(ws), "labels": QUEUES.index(q)}


def build(n, seed):
    r = random.Random(seed)
    feats = Features({"text": Value("string"), "labels": ClassLabel(names=QUEUES)})
    return Dataset.from_list([ticket(r) for _ in range(n)], features=feats)


train, test = build(1400, 5), build(500, 6)

core = Tokenizer(models.WordLevel(unk_token="[UNK]"))
core.normalizer = normalizers.Lowercase()
core.pre_tokenizer = pre_tokenizers.Whitespace()
core.train_from_iterator(train["text"], trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
tok = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32)
enc = lambda b: tok(b["text"], truncation=True, return_token_type_ids=False)
train, test = train.map(enc, batched=True), test.map(enc, batched=True)

cfg = DistilBertConfig(vocab_size=len(tok), dim=64, n_layers=2, n_heads=4, hidden_dim=128,
                       max_position_embeddings=32, num_labels=4, seq_classif_dropout=0.1,
                       id2label=dict(enumerate(QUEUES)), label2id={q: i for i, q in enumerate(QUEUES)})
model = DistilBertForSequenceClassification(cfg)
# order of words means nothing here, positions stay at their init
model.distilbert.embeddings.position_embeddings.weight.requires_grad_(False)

counts = np.bincount(train["labels"], minlength=4)
cw = torch.tensor(len(train) / (4 * counts), dtype=torch.float32).sqrt()
print("queue counts", counts, "class weights", cw)


class RoutingTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = nn.functional.cross_entropy(out.logits, labels, weight=cw.to(out.logits.device), label_smoothing=0.1)
        return (loss, out) if return_outputs else loss

    def create_optimizer(self, *unused):
        head = [p for n, p in self.model.named_parameters() if p.requires_grad and "distilbert" not in n]
        body = [p for n, p in self.model.named_parameters() if p.requires_grad and "distilbert" in n]
        self.optimizer = torch.optim.AdamW([{"params": body, "lr": self.args.learning_rate},
                                            {"params": head, "lr": 3 * self.args.learning_rate}],
                                           weight_decay=self.args.weight_decay)
        return self.optimizer


def score(p):
    pred = p.predictions.argmax(-1)
    return {"macro_f1": f1_score(p.label_ids, pred, average="macro"), "acc": accuracy_score(p.label_ids, pred)}


args = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=opts.epochs, learning_rate=opts.lr, weight_decay=0.1,
    per_device_train_batch_size=24, gradient_accumulation_steps=2, per_device_eval_batch_size=125,
    eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True,
    metric_for_best_model="macro_f1", lr_scheduler_type="constant_with_warmup", warmup_steps=20,
    logging_steps=25, report_to="none", use_cpu=True, disable_tqdm=True)
tr = RoutingTrainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                    data_collator=DataCollatorWithPadding(tok), compute_metrics=score,
                    callbacks=[EarlyStoppingCallback(3)])
tr.train()
seen = tr.predict(train.select(range(200)), metric_key_prefix="seen").metrics
res = tr.evaluate()
print("on rows from training: acc %.4f" % seen["seen_acc"])
print("FINAL macro_f1=%.4f acc=%.4f" % (res["eval_macro_f1"], res["eval_acc"]))
