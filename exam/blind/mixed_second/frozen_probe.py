"""Pretrain a tiny masked-token BERT on synthetic 'sentences', freeze it, train only a classifier head (label smoothing)."""
import argparse
import numpy as np
import torch
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, Trainer, TrainingArguments,
                          set_seed)

V, LEN, TOPICS, MASK = 60, 12, 6, 1


def sentences(n, rng):
    """Each topic favours its own nine words; 35% of words come from anywhere."""
    y = rng.integers(0, TOPICS, n)
    own = 4 + y[:, None] * 9 + rng.integers(0, 9, (n, LEN))
    ids = np.where(rng.random((n, LEN)) < .35, rng.integers(4, V, (n, LEN)), own)
    return torch.tensor(ids), torch.tensor(y)


class Masked(torch.utils.data.Dataset):
    def __init__(self, ids, seed):
        self.ids, self.g = ids, torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i].clone()
        hide = torch.rand(LEN, generator=self.g) < .25
        labels = torch.where(hide, ids, -100)
        ids[hide] = MASK
        return {"input_ids": ids, "labels": labels}


class Labelled(torch.utils.data.Dataset):
    def __init__(self, ids, y):
        self.ids, self.y = ids, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.y[i]}


def targs(name, seed, **kw):
    return TrainingArguments(output_dir=f"/tmp/{name}", report_to=[], disable_tqdm=True, use_cpu=True, seed=seed,
                             save_strategy="no", logging_strategy="epoch", **kw)


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main(a):
    set_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    cfg = BertConfig(vocab_size=V, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                     max_position_embeddings=LEN, num_labels=TOPICS)
    mlm = BertForMaskedLM(cfg)
    unl, _ = sentences(3000, rng)
    Trainer(mlm, targs("probe_mlm", a.seed, num_train_epochs=5, per_device_train_batch_size=64, learning_rate=3e-3),
            train_dataset=Masked(unl, a.seed)).train()

    few, few_y = sentences(120, rng)
    test = Labelled(*sentences(1000, rng))
    for name, init in (("random", None), ("pretrained", mlm)):
        set_seed(a.seed)
        clf = BertForSequenceClassification(cfg)
        if init is not None:
            clf.bert.load_state_dict(init.bert.state_dict(), strict=False)
        for n, p in clf.named_parameters():
            p.requires_grad = n.startswith(("classifier", "bert.pooler"))
        tr = Trainer(clf, targs("probe_clf", a.seed, num_train_epochs=15, per_device_train_batch_size=16,
                                learning_rate=5e-3, label_smoothing_factor=.1),
                     train_dataset=Labelled(few, few_y), eval_dataset=test, compute_metrics=accuracy)
        tr.train()
        print(f"{name} frozen encoder, 120 labels: test accuracy {tr.evaluate()['eval_accuracy']:.3f}")


p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
main(p.parse_args())
