# Train a tiny encoder on task A, then adapt it to task B with LoRA adapters and a fresh head
import random

import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(10)
GROUPS = {
    "fruit": "apple pear plum grape melon".split(),
    "tool": "hammer saw drill wrench chisel".split(),
    "sport": "tennis rugby judo golf rowing".split(),
}
FILL = "a the with and some for new old near my very then".split()
vocab = {w: i + 1 for i, w in enumerate(sorted(FILL + sum(GROUPS.values(), [])))}


def row(task):
    counts = {k: 0 for k in GROUPS}
    words = random.choices(FILL, k=6)
    picks = random.sample(list(GROUPS), 2)
    for k, n in zip(picks, (2, 1)):
        words += random.choices(GROUPS[k], k=n)
        counts[k] = n
    random.shuffle(words)
    if task == "A":      # which group is the most frequent
        y = list(GROUPS).index(picks[0])
    else:                # which group does not appear at all
        y = [i for i, k in enumerate(GROUPS) if counts[k] == 0][0]
    return {"input_ids": [vocab[w] for w in words], "labels": y}


def data(task, n):
    return Dataset.from_list([row(task) for _ in range(n)])


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def fit(model, train, valid, lr, epochs, out):
    args = TrainingArguments(output_dir=out, num_train_epochs=epochs, learning_rate=lr,
                             per_device_train_batch_size=32, per_device_eval_batch_size=100, warmup_steps=10,
                             eval_strategy="epoch", logging_strategy="epoch", save_strategy="no",
                             report_to="none", disable_tqdm=True, use_cpu=True, label_names=["labels"])
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid, compute_metrics=accuracy)
    trainer.train()
    return trainer.evaluate()


cfg = BertConfig(vocab_size=len(vocab) + 1, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=96, max_position_embeddings=16, num_labels=3)
base = BertForSequenceClassification(cfg)
res = fit(base, data("A", 1500), data("A", 300), 2e-3, 4, "out_lora_a")
print("task A:", round(res["eval_accuracy"], 4))

base.classifier = torch.nn.Linear(48, 3)
peft_model = get_peft_model(base, LoraConfig(
    task_type=TaskType.SEQ_CLS, r=8, lora_alpha=16, lora_dropout=0.05,
    target_modules=["query", "value"], modules_to_save=["classifier"]))
peft_model.print_trainable_parameters()
res = fit(peft_model, data("B", 1200), data("B", 300), 5e-3, 4, "out_lora_b")
print("task B:", round(res["eval_accuracy"], 4))

merged = peft_model.merge_and_unload().eval()
test = data("B", 300)
with torch.no_grad():
    out = merged(input_ids=torch.tensor(test["input_ids"])).logits.argmax(-1)
print("task B, merged weights, fresh rows:", (out == torch.tensor(test["labels"])).float().mean().item())
