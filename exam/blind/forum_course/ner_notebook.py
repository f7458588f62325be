"""Lab 5: named entity recognition with a small ELECTRA-style encoder.

Words are cut into word pieces; only the first piece of each word carries a
label, all the others are skipped in the loss.
"""
import argparse
import os
import random
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (DataCollatorForTokenClassification, ElectraConfig,
                          ElectraForTokenClassification, PreTrainedTokenizerFast, Trainer,
                          TrainingArguments, set_seed)

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
L2I = {l: i for i, l in enumerate(LABELS)}
FIRST = ["anna", "boris", "carla", "dmitri", "elena", "farid", "greta", "hugo", "ines", "jonas"]
LAST = ["maier", "petrov", "santos", "okafor", "lindqvist", "tanaka", "moreau", "novak"]
PLACE = ["paris", "berlin", "new york", "san marino", "oslo", "cape town", "lima", "new delhi", "rome"]
TEMPLATES = [
    "yesterday {P} travelled to {L} by train", "{P} lives in {L}", "the mayor of {L} met {P} at noon",
    "{P} and {P} opened a shop in {L}", "nobody in {L} has heard of {P}", "the weather was fine today",
    "flights from {L} to {L} are cancelled", "a letter for {P} arrived", "we sold the old car",
]


def sentence(rng):
    words, tags = [], []
    for w in rng.choice(TEMPLATES).split():
        if w == "{P}":
            ent = [rng.choice(FIRST)] + ([rng.choice(LAST)] if rng.random() < 0.6 else [])
            kind = "PER"
        elif w == "{L}":
            ent, kind = rng.choice(PLACE).split(), "LOC"
        else:
            words.append(w)
            tags.append(L2I["O"])
            continue
        words += ent
        tags += [L2I[("B-" if i == 0 else "I-") + kind] for i in range(len(ent))]
    return {"words": words, "tags": tags}


def corpus(n, seed):
    rng = random.Random(seed)
    return Dataset.from_list([sentence(rng) for _ in range(n)])


def make_tokenizer(texts):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=160, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]")


def align(batch, tokenizer):
    enc = tokenizer(batch["words"], is_split_into_words=True, truncation=True, max_length=64)
    enc["labels"] = []
    for i, tags in enumerate(batch["tags"]):
        previous, row = None, []
        for wid in enc.word_ids(i):
            row.append(-100 if wid is None or wid == previous else tags[wid])
            previous = wid
        enc["labels"].append(row)
    return enc


def entity_f1(prediction):
    guess = prediction.predictions.argmax(-1)
    keep = prediction.label_ids != -100
    y, p = prediction.label_ids[keep], guess[keep]
    tp = np.sum((y == p) & (y > 0))
    precision, recall = tp / max(1, (p > 0).sum()), tp / max(1, (y > 0).sum())
    return {"token_f1": 2 * precision * recall / max(1e-9, precision + recall),
            "token_acc": float((y == p).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--freeze-embeddings", action="store_true", default=True)
    args = parser.parse_args()
    set_seed(13)

    train, test = corpus(700, 1), corpus(200, 2)
    tokenizer = make_tokenizer(" ".join(w) for w in train["words"])
    train = train.map(align, batched=True, fn_kwargs={"tokenizer": tokenizer}, remove_columns=["words", "tags"])
    test = test.map(align, batched=True, fn_kwargs={"tokenizer": tokenizer}, remove_columns=["words", "tags"])

    config = ElectraConfig(vocab_size=len(tokenizer), embedding_size=48, hidden_size=64,
                           num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                           max_position_embeddings=64, num_labels=len(LABELS),
                           id2label=dict(enumerate(LABELS)), label2id=L2I)
    model = ElectraForTokenClassification(config)
    if args.freeze_embeddings:      # random projections are good enough for this lab
        for p in model.electra.embeddings.parameters():
            p.requires_grad = False
    print("trainable", model.num_parameters(only_trainable=True), "of", model.num_parameters())

    trainer = Trainer(
        model=model, train_dataset=train, eval_dataset=test, compute_metrics=entity_f1,
        data_collator=DataCollatorForTokenClassification(tokenizer), processing_class=tokenizer,
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(), num_train_epochs=args.epochs, learning_rate=3e-3,
            per_device_train_batch_size=16, per_device_eval_batch_size=100, eval_strategy="epoch",
            save_strategy="no", lr_scheduler_type="polynomial", max_grad_norm=0.5, bf16=False,
            warmup_steps=20, logging_steps=44, report_to=[], use_cpu=True, disable_tqdm=True))
    trainer.train()
    m = trainer.evaluate()
    print(f"FINAL token_f1={m['eval_token_f1']:.4f} token_acc={m['eval_token_acc']:.4f}")


if __name__ == "__main__":
    main()
