"""LoRA on a small BERT for sentiment, trained by the HF Trainer."""
import tempfile
import numpy as np
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(1)
PAD, CLS, SEP = 0, 1, 2
GOOD, BAD, NEUTRAL = list(range(3, 23)), list(range(23, 43)), list(range(43, 103))


class ReviewDataset(torch.utils.data.Dataset):
    """Reviews of neutral words with two or three loaded ones."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            label = int(rng.integers(2))
            body = rng.choice(NEUTRAL, rng.integers(4, 9)).tolist() + rng.choice(GOOD if label else BAD, 3).tolist()
            rng.shuffle(body)
            self.rows.append((body, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        body, label = self.rows[i]
        ids = [CLS] + body + [SEP]
        pad = 14 - len(ids)
        return {"input_ids": ids + [PAD] * pad, "attention_mask": [1] * len(ids) + [0] * pad, "labels": label}


def compute_metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    config = BertConfig(vocab_size=103, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                        max_position_embeddings=32, num_labels=2, hidden_dropout_prob=0.05, attention_probs_dropout_prob=0.05)
    base = BertForSequenceClassification(config)
    peft_config = LoraConfig(task_type=TaskType.SEQ_CLS, inference_mode=False, r=8, lora_alpha=16, lora_dropout=0.0,
                             target_modules=["query", "key", "value", "dense"])
    model = get_peft_model(base, peft_config)
    model.print_trainable_parameters()
    with tempfile.TemporaryDirectory() as tmp:
        args = TrainingArguments(output_dir=tmp, learning_rate=5e-3, per_device_train_batch_size=32, per_device_eval_batch_size=64,
                                 num_train_epochs=4, weight_decay=0.01, eval_strategy="epoch", logging_strategy="epoch",
                                 save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True)
        trainer = Trainer(model=model, args=args, train_dataset=ReviewDataset(800, 0), eval_dataset=ReviewDataset(200, 1),
                          compute_metrics=compute_metrics)
        before = trainer.evaluate()
        trainer.train()
        after = trainer.evaluate()
    print(f"eval loss {before['eval_loss']:.3f} -> {after['eval_loss']:.3f}, accuracy {before['eval_accuracy']:.3f} -> {after['eval_accuracy']:.3f}")


if __name__ == "__main__":
    main()
